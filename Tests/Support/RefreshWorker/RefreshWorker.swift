#if OAuth
import Foundation
import SystemPackage
import TokenVault
import TokenVaultAuth
import TokenVaultOAuth

/// A program that wants an access token, for tests that run many of it at once:
/// `RefreshWorker VAULT STATE ISSUER CLIENT ACCOUNT`. It opens the vault, asks its manager for a token, and prints `token` and the
/// token; or `failed` and why.
@main
struct RefreshWorker {
    static func main() async {
        let arguments = CommandLine.arguments
        do {
            let vault = try FileVault.open(
                at: FilePath(arguments[1]),
                configuration: FileVaultConfiguration(
                    stateDirectory: FilePath(arguments[2]), lockTimeout: .seconds(300)))
            try await vault.unlock(
                with: .keyFile(Secret(utf8: "not a real key: 0123456789abcdef0123456789abcdef")))
            var bounds = OAuthTransport.Configuration()
            bounds.requestTimeout = .seconds(300)
            let transport = OAuthTransport(configuration: bounds)
            let provider = try await ProviderMetadata.discover(issuer: arguments[3], transport: transport)
            let client = try OAuthClient(provider: provider, clientID: arguments[4], transport: transport)
            var configuration = TokenManager.Configuration()
            configuration.refreshTimeout = .seconds(300)
            configuration.leaseTimeout = .seconds(300)
            let manager = client.tokenManager(
                storage: vault.storage(service: "sessions"), account: arguments[5],
                configuration: configuration)
            print("token \(try await manager.validAccessToken())")
        } catch {
            print("failed \(error)")
        }
    }
}
#else
@main
struct RefreshWorker {
    static func main() {}
}
#endif
