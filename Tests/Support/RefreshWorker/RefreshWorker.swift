#if OAuth
import Foundation
import SystemPackage
import TokenVault
import TokenVaultAuth
import TokenVaultOAuth
import TokenVaultPlatform

/// A program that wants an access token, for tests that run many of it, or end it at a step of its refresh.
///
/// `RefreshWorker VAULT STATE ISSUER CLIENT ACCOUNT [AHEAD [END]]` opens the vault and asks its manager for a
/// token. It prints `token` and the token, or `failed` and why.
///
/// Its clock is AHEAD seconds ahead. With END, an ``Ending``, it says at each step whether the manager has
/// published new tokens (`answered old`). It also says whether the refresh token was sent for the first time
/// (`asks first`, `asks again`). At END it ends without warning.
@main
struct RefreshWorker {
    static func main() async {
        let arguments = CommandLine.arguments
        let ending = arguments.count > 7 ? Ending(arguments[7]) : nil
        do {
            let storage = try storage(FilePath(arguments[1]), state: FilePath(arguments[2]), ending)
            var bounds = OAuthTransport.Configuration()
            bounds.requestTimeout = .seconds(3_600)
            let transport = OAuthTransport(configuration: bounds)
            let provider = try await ProviderMetadata.discover(issuer: arguments[3], transport: transport)
            let client = try OAuthClient(provider: provider, clientID: arguments[4], transport: transport)
            var configuration = TokenManager.Configuration()
            configuration.refreshTimeout = .seconds(3_600)
            configuration.leaseTimeout = .seconds(3_600)
            let ahead = arguments.count > 6 ? Double(arguments[6]) ?? 0 : 0
            configuration.clock = { Date().addingTimeInterval(ahead) }
            let manager: TokenManager
            if let ending {
                manager = try await ending.manager(client, storage, account: arguments[5], configuration)
            } else {
                manager = client.tokenManager(
                    storage: storage, account: arguments[5], configuration: configuration)
            }
            say("token \(try await manager.validAccessToken())")
        } catch {
            say("failed \(error)")
        }
    }

    private static func storage(
        _ path: FilePath, state: FilePath, _ ending: Ending?
    ) throws -> FileTokenStorage {
        let real = try PosixDirectory(path.removingLastComponent())
        let name = path.lastComponent?.string ?? ""
        let location = VaultLocation(
            directory: EndingDirectory(base: real, ending: ending), name: name,
            state: try PosixDirectory(state), path: path, absolutePath: real.absolutePath?.appending(name))
        let vault = try BlockingFileVault.open(
            at: location,
            configuration: FileVaultConfiguration(stateDirectory: state, lockTimeout: .seconds(3_600)))
        try vault.unlock(with: .keyFile(Secret(utf8: "not a real key: 0123456789abcdef0123456789abcdef")))
        return FileTokenStorage(vault, service: "sessions")
    }
}
#else
@main
struct RefreshWorker {
    static func main() {}
}
#endif
