internal import TokenVaultCrypto

/// The non-Swift libraries that TokenVault links, for a program's `--version`.
package enum LinkedLibraries {
    /// The version of the linked libsodium, as `sodium_version_string` returns it: `1.0.18`.
    package static var sodiumVersion: String { Sodium.version }
}
