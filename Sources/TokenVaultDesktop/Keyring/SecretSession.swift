internal import CSecret
internal import TokenVaultCore
internal import TokenVaultCrypto

/// The encrypted session that secrets cross the bus in: libsecret's, with a key that both sides agreed on
/// by Diffie-Hellman (`dh-ietf1024-sha256-aes128-cbc-pkcs7`).
@safe final class SecretSession: @unchecked Sendable {
    private let library: SecretLibrary
    // The service's session is set before this object exists and never again, so encoding and decoding only
    // read it.
    private let service: OpaquePointer

    /// The session's object path, for the service's calls.
    let path: String

    /// Whether secrets are not encrypted.
    let isPlain: Bool

    /// Opens a session on this thread, which waits; `cancellable` ends the wait. Throws `unavailable`.
    init(_ connection: BusConnection, cancellable: BusCancellable) throws(TokenStorageError) {
        library = connection.library
        var error: OpaquePointer?
        let made = unsafe csecret_open_session(
            library.c, connection.raw, cancellable.pointer, &error)
        guard let made = unsafe made else { throw .serviceIsLost(unsafe library.take(error)) }
        unsafe service = unsafe made
        let algorithms = unsafe library.c.pointee.secret_service_get_session_algorithms(made)
        isPlain = unsafe ["", "plain"].contains(library.text(algorithms))
        let path = unsafe library.c.pointee.secret_service_get_session_dbus_path(made)
        self.path = unsafe library.text(path)
    }

    deinit { unsafe library.c.pointee.g_object_unref(UnsafeMutableRawPointer(service)) }

    /// `bytes` as the service takes them: `(oayays)`. Throws `resourcesExhausted`.
    func encrypt(_ bytes: SecretBytes, contentType: String) throws(TokenStorageError) -> Variant {
        let value = unsafe bytes.withUnsafeBytes {
            unsafe csecret_value(library.c, $0.baseAddress, $0.count, contentType)
        }
        guard let value = unsafe value else { throw .secretService(.resourcesExhausted) }
        defer { unsafe library.c.pointee.secret_value_unref(UnsafeMutableRawPointer(value)) }
        guard let encoded = unsafe library.c.pointee.secret_service_encode_dbus_secret(service, value)
        else { throw .secretService(.resourcesExhausted, .shortage(.encryption)) }
        return unsafe Variant(library, keeping: encoded)
    }

    /// The bytes in what the service gave, or `nil` when they are not of this session or damaged.
    func decrypt(_ value: Variant) -> SecretBytes? {
        guard value.isOf("(oayays)"),
            let decoded = unsafe library.c.pointee.secret_service_decode_dbus_secret(service, value.pointer)
        else { return nil }
        defer { unsafe library.c.pointee.secret_value_unref(UnsafeMutableRawPointer(decoded)) }
        var count = 0
        guard let bytes = unsafe library.c.pointee.secret_value_get(decoded, &count) else {
            return SecretBytes(copying: [])
        }
        return unsafe SecretBytes(capacity: count) { target in
            unsafe target.copyMemory(from: UnsafeRawBufferPointer(start: bytes, count: count))
            return count
        }
    }
}
