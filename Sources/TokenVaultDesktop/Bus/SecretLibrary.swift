internal import CSecret
package import TokenVaultCore

/// libsecret and what it brings, looked for when first used.
@safe package struct SecretLibrary: Sendable {
    /// The C functions, for as long as the process lives.
    nonisolated(unsafe) let c: UnsafePointer<csecret_functions>

    private static let loaded: Result<SecretLibrary, TokenStorageError> = {
        var missing: UnsafePointer<CChar>?
        if let functions = unsafe csecret_load(&missing) {
            return .success(unsafe SecretLibrary(c: functions))
        }
        let part = unsafe missing.map { unsafe String(cString: $0) } ?? "libsecret-1.so.0"
        return .failure(
            .secretService(.unavailable, .noLibrary(part)))
    }()

    /// The library. Throws `unavailable` with what is missing when it is not installed.
    package static func load() throws(TokenStorageError) -> SecretLibrary { try loaded.get() }

    /// A text of the library; empty for none.
    func text(_ pointer: UnsafePointer<CChar>?) -> String {
        unsafe pointer.map { unsafe String(cString: $0) } ?? ""
    }

    /// What a failed call of GLib said; frees the error.
    func take(_ error: OpaquePointer?) -> String {
        guard let error = unsafe error else { return "no reason given" }
        defer { unsafe c.pointee.g_error_free(error) }
        let fields = unsafe csecret_fields(error)
        guard let message = unsafe fields?.pointee.message else { return "no reason given" }
        return unsafe String(cString: message)
    }
}
