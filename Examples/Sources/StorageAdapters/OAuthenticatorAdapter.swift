import Shapes
import TokenVault

extension LoginStorage {
    /// OAuthenticator's login in a vault, as the account `account`.
    static func vault(_ storage: any TokenStorage, account: String) -> LoginStorage {
        LoginStorage(
            retrieveLogin: { try await storage.retrieve(Login.self, for: TokenKey(account)) },
            storeLogin: { try await storage.store(encoding: $0, for: TokenKey(account)) },
            clearLogin: { try await storage.delete(for: TokenKey(account)) })
    }
}
