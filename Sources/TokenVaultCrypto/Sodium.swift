internal import CSodium

/// libsodium itself: its availability and version.
package enum Sodium {
    /// Whether `sodium_init` succeeded. Every entry point of this target checks it first: `sodium_malloc`
    /// before `sodium_init` would end the process.
    package static let isReady: Bool = sodium_init() >= 0

    /// The version of the linked libsodium, as `sodium_version_string` returns it.
    package static var version: String { String(cString: sodium_version_string()) }
}

/// The errors of cryptography. None names a key, a passphrase or a plaintext.
package enum CryptoError: Error, Equatable {
    /// `sodium_init` failed, or the system gave no guarded memory.
    case unavailable
    /// Argon2id could not get the memory that its cost requires.
    case outOfMemory
    /// A cost, a length or a key that libsodium's documentation does not allow.
    case invalidParameter
}
