internal import TokenVaultCrypto

/// The libraries outside of Swift that this one runs on, for a program's `--version`.
package enum LinkedLibraries {
    /// The version of the libsodium in use, as `sodium_version_string` gives it: `1.0.18`.
    package static var sodiumVersion: String { Sodium.version }
}
