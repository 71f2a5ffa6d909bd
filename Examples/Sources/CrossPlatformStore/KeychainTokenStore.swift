// Linux has no Security framework, so the tests of this repository do not build this file.
#if canImport(Security)
import Dispatch
import Foundation
import Security

/// The tokens of the SDK in the Keychain of Apple's platforms.
///
/// On macOS this is the data protection keychain, as on iOS: the file-based one has no accessibility classes.
/// A program needs a signature with an application identifier or an access group to use it, else each call
/// throws `failed`.
public struct KeychainTokenStore: AuthTokenStore {
    private let items: KeychainItems
    // Calls of the Keychain block, so they run outside the threads that tasks share.
    private let queue = DispatchQueue(label: "com.example.auth.keychain")

    /// Creates a store of the service's tokens. Opens nothing: the system opens the Keychain.
    public init(service: String) { items = KeychainItems(service: service) }

    public func store(_ token: String, for account: String) async throws(AuthTokenStoreError) {
        try await run { (items) throws(AuthTokenStoreError) in try items.store(token, for: account) }
    }

    public func retrieve(for account: String) async throws(AuthTokenStoreError) -> String? {
        try await run { (items) throws(AuthTokenStoreError) in try items.retrieve(for: account) }
    }

    public func delete(for account: String) async throws(AuthTokenStoreError) {
        try await run { (items) throws(AuthTokenStoreError) in try items.delete(for: account) }
    }

    private func run<Value: Sendable>(
        _ body: @escaping @Sendable (KeychainItems) throws(AuthTokenStoreError) -> Value
    ) async throws(AuthTokenStoreError) -> Value {
        let items = items
        let result: Result<Value, AuthTokenStoreError> = await withCheckedContinuation { continuation in
            queue.async {
                continuation.resume(
                    returning: Result { () throws(AuthTokenStoreError) in try body(items) })
            }
        }
        return try result.get()
    }
}

/// The Keychain's items of one service. Every call blocks its thread.
private struct KeychainItems: Sendable {
    let service: String

    func store(_ token: String, for account: String) throws(AuthTokenStoreError) {
        let query = self.query(of: account)
        let value: [String: Any] = [
            kSecValueData as String: Data(token.utf8),
            kSecAttrAccessible as String: kSecAttrAccessibleWhenUnlockedThisDeviceOnly,
        ]
        // Never delete and add: a crash between the two would lose the token.
        var status = SecItemUpdate(query as CFDictionary, value as CFDictionary)
        if status == errSecItemNotFound {
            let item = query.merging(value) { _, new in new }
            status = SecItemAdd(item as CFDictionary, nil)
            // Another process added the item first.
            if status == errSecDuplicateItem {
                status = SecItemUpdate(query as CFDictionary, value as CFDictionary)
            }
        }
        guard status == errSecSuccess else { throw AuthTokenStoreError(status) }
    }

    func retrieve(for account: String) throws(AuthTokenStoreError) -> String? {
        var query = self.query(of: account)
        query[kSecReturnData as String] = true
        query[kSecMatchLimit as String] = kSecMatchLimitOne
        var result: CFTypeRef?
        let status = SecItemCopyMatching(query as CFDictionary, &result)
        // Only this status means that the token is absent. A locked Keychain has another status.
        if status == errSecItemNotFound { return nil }
        guard status == errSecSuccess else { throw AuthTokenStoreError(status) }
        guard let data = result as? Data, let token = String(data: data, encoding: .utf8) else {
            throw AuthTokenStoreError.failed("Keychain: the item is not text")
        }
        return token
    }

    func delete(for account: String) throws(AuthTokenStoreError) {
        let status = SecItemDelete(query(of: account) as CFDictionary)
        guard status == errSecSuccess || status == errSecItemNotFound else {
            throw AuthTokenStoreError(status)
        }
    }

    private func query(of account: String) -> [String: Any] {
        [
            kSecClass as String: kSecClassGenericPassword,
            kSecAttrService as String: service,
            kSecAttrAccount as String: account,
            kSecUseDataProtectionKeychain as String: true,
        ]
    }
}

extension AuthTokenStoreError {
    /// Creates the error of a call of the Keychain that failed with `status`.
    fileprivate init(_ status: OSStatus) {
        guard status != errSecInteractionNotAllowed else {
            self = .locked
            return
        }
        let text = SecCopyErrorMessageString(status, nil).map { $0 as String } ?? "unknown"
        self = .failed("Keychain: \(text) (\(status))")
    }
}
#endif
