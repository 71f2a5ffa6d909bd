#if OAuth
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform
@testable import TokenVaultAuth
@testable import TokenVaultOAuth

/// A vault, a provider with rotation and reuse detection, and processes that use both.
final class WorkerScene {
    let provider: RunningProvider
    let client: OAuthClient
    let storage: FileTokenStorage
    private let scratch: ScratchDirectory
    private let arguments: [String]
    /// How far the workers' clocks are ahead, in seconds.
    private(set) var ahead = 0

    init() async throws {
        provider = try RunningProvider()
        client = try await provider.client()
        scratch = try ScratchDirectory(in: FilePath("/tmp"))
        let path = scratch.path.appending("tokens.vault")
        let state = scratch.path.appending("state")
        let vault = try BlockingFileVault.create(
            at: path,
            unlockMethod: .keyFile(Secret(utf8: "not a real key: 0123456789abcdef0123456789abcdef")),
            configuration: FileVaultConfiguration(
                stateDirectory: state, lockTimeout: .seconds(3_600), keyDerivationCost: .minimum))
        storage = FileTokenStorage(vault, service: "sessions")
        arguments = [path.string, state.string, provider.issuer, provider.clientID("browser")]
    }

    deinit { scratch.remove() }

    /// A manager in this process.
    func manager(_ account: String = "work") -> TokenManager {
        client.tokenManager(storage: storage, account: account)
    }

    /// Signs `user` in at `account`.
    func signIn(_ user: String, at account: String = "work") async throws {
        try await manager(account).updateTokens(try await provider.signIn(client, user: user).tokens)
    }

    /// Lets all access tokens end, for the workers to come.
    func goOn() { ahead += 7_200 }

    /// A worker that wants a token of `account`, and ends at `place`.
    func start(
        _ account: String = "work", endingAt place: String = "never", environment: [String] = []
    ) throws -> WorkerProcess {
        try WorkerProcess(arguments + [account, String(ahead), place], environment: environment)
    }

    /// As ``start(_:endingAt:environment:)``, to its end.
    func run(
        _ account: String = "work", endingAt place: String = "never", environment: [String] = []
    ) throws -> WorkerProcess.End {
        try start(account, endingAt: place, environment: environment).end()
    }

    /// The stored record of `account`; `nil` when there is none.
    func record(_ account: String = "work") throws -> SessionRecord? {
        try storage.blocking.secret(for: TokenKey("auth/session/\(account)"))?.decode(SessionRecord.self)
    }

    /// How often a refresh token came to the provider.
    func requests() throws -> Int { try provider.requests("refresh_token") }

    /// Returns the user of `token`, as the provider's resource sees it; `nil` when the resource refuses the
    /// token.
    func owner(of token: String) async throws -> String? {
        var request = HTTPClientRequest(url: "\(provider.origin)/api/echo")
        request.headers.add(name: "Authorization", value: "Bearer \(token)")
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(3_600))
        guard response.status == .ok else { return nil }
        let body = try await response.body.collect(upTo: 1 << 20)
        return RunningProvider.JSON(
            value: try JSONSerialization.jsonObject(with: Data(body.readableBytesView)))["user"].text
    }

    /// How many sessions of `user` the provider has, and how many refresh tokens that are good.
    func sessions(_ user: String) throws -> [Int] {
        let answer = try provider.tell("sessions", ["user": user])
        return [answer["families"].number, answer["refresh_tokens"].number]
    }
}
#endif
