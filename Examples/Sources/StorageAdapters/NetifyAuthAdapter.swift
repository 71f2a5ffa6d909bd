import Shapes
import TokenVault

/// NetifyAuth's tokens in a vault.
struct NetifyVaultStorage: NetifyTokenStorage {
    let storage: any TokenStorage

    func save(tokenInfo: NetifyTokenInfo, forKey key: String) async throws {
        try await storage.store(encoding: tokenInfo, for: TokenKey(key))
    }
    func load(forKey key: String) async throws -> NetifyTokenInfo {
        guard let token = try await storage.retrieve(NetifyTokenInfo.self, for: TokenKey(key)) else {
            throw NoEntry()
        }
        return token
    }
    func delete(forKey key: String) async throws { try await storage.delete(for: TokenKey(key)) }
}
