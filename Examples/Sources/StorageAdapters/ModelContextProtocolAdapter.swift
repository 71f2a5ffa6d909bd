import Shapes
import TokenVault

/// The MCP swift-sdk's token in a vault. Its protocol cannot say why there is no token, so `report` does: an app that takes
/// a locked vault for signed out would log its user out.
struct MCPVaultStorage: MCPTokenStorage {
    let storage: any BlockingTokenStorage
    let report: @Sendable (TokenStorageError) -> Void

    func save(_ token: OAuthAccessToken) {
        do { try storage.store(encoding: token, for: "access_token") } catch { report(error) }
    }
    func load() -> OAuthAccessToken? {
        do { return try storage.retrieve(OAuthAccessToken.self, for: "access_token") } catch { report(error) }
        return nil
    }
    func clear() {
        do { try storage.delete(for: "access_token") } catch { report(error) }
    }
}
