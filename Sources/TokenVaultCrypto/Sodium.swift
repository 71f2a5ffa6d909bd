internal import CSodium

/// libsodium itself: whether it is there, and which one.
package enum Sodium {
    /// `sodium_init` ran and succeeded. Every entry of this target asks first: `sodium_malloc` before
    /// `sodium_init` would end the process.
    package static let isReady: Bool = sodium_init() >= 0

    /// The version of the libsodium in use, as `sodium_version_string` gives it.
    package static var version: String { String(cString: sodium_version_string()) }
}

/// What cryptography can refuse. Nothing here names a key, a passphrase or a plaintext.
package enum CryptoError: Error, Equatable {
    /// `sodium_init` failed, or the system gave no guarded memory.
    case unavailable
    /// Argon2id could not get the memory its cost asks for.
    case outOfMemory
    /// A cost, a length or a key that libsodium's documentation does not allow.
    case invalidParameter
}
