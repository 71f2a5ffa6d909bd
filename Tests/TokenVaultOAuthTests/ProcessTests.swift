#if OAuth
import Foundation
import Glibc
import SystemPackage
import Testing
import TokenVault
@testable import TokenVaultAuth
@testable import TokenVaultOAuth

/// Many processes with one vault and one session, and a provider that ends the session of whoever uses a refresh token twice.
@Suite struct ProcessTests {
    static let keyFile = UnlockMethod.keyFile(
        Secret(utf8: "not a real key: 0123456789abcdef0123456789abcdef"))

    @Test func fiftyProcessesRefreshOnce() async throws {
        let provider = try RunningProvider()
        var template = Array("/tmp/tokenvault-refresh-XXXXXX".utf8CString)
        let directory = FilePath(String(cString: try #require(mkdtemp(&template))))
        defer { try? FileManager.default.removeItem(atPath: directory.string) }
        let path = directory.appending("vaults").appending("test.vault")
        let state = directory.appending("state")
        let vault = try await FileVault.create(
            at: path, unlockMethod: Self.keyFile,
            configuration: FileVaultConfiguration(
                stateDirectory: state, lockTimeout: .seconds(300), keyDerivationCost: .minimum))
        var bounds = OAuthTransport.Configuration()
        bounds.requestTimeout = .seconds(300)
        let transport = OAuthTransport(configuration: bounds)
        let metadata = try await ProviderMetadata.discover(issuer: provider.issuer, transport: transport)
        let client = try OAuthClient(
            provider: metadata, clientID: provider.clientID("browser"), transport: transport)
        let redirect = try await LoopbackRedirect.listen(for: metadata)
        let request = try client.authorizationRequest(
            redirectURI: redirect.redirectURI, state: redirect.state, scopes: ["openid", "read"],
            parameters: [:])
        async let page = provider.have("browse", ["url": request.url])
        let signedIn = try await client.exchange(
            try await redirect.answer(within: .seconds(300)), of: request)
        _ = try await page
        let manager = client.tokenManager(storage: vault.storage(service: "sessions"), account: "a")
        try await manager.updateTokens(
            TokenInfo(
                accessToken: signedIn.tokens.accessToken, refreshToken: signedIn.tokens.refreshToken,
                idToken: signedIn.tokens.idToken, accessTokenExpiry: Date().addingTimeInterval(-1)))

        let arguments = [path.string, state.string, provider.issuer, provider.clientID("browser"), "a"]
        let workers = try (0..<50).map { number in
            let output = directory.appending("output-\(number)")
            return (try Self.start(arguments, output: output), output)
        }
        var said: [String] = []
        for (process, output) in workers {
            var status: CInt = 0
            while waitpid(process, &status, 0) < 0, errno == EINTR {}
            said.append(try String(contentsOfFile: output.string, encoding: .utf8))
        }
        #expect(said.count == 50)
        #expect(Set(said).count == 1)
        #expect(said[0].hasPrefix("token "))
        #expect(!said[0].contains(signedIn.tokens.accessToken))
        #expect(try provider.requests("refresh_token") == 1)
        // Nobody was logged out: the session goes on, here too.
        #expect(said[0] == "token \(try await manager.validAccessToken())\n")
        #expect(try provider.requests("refresh_token") == 1)
        try await manager.refreshTokens()
        #expect(try provider.requests("refresh_token") == 2)
        vault.close()
    }

    private static func start(_ arguments: [String], output: FilePath) throws -> pid_t {
        // Beside the tests, whichever program loads them.
        let program =
            try CommandLine.arguments.first { $0.hasSuffix(".xctest") }
            ?? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let worker = FilePath(program).removingLastComponent().appending("RefreshWorker").string
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, output.string, O_WRONLY | O_CREAT, 0o600)
        let words: [UnsafeMutablePointer<CChar>?] = ([worker] + arguments).map { strdup($0) } + [nil]
        let environment: [UnsafeMutablePointer<CChar>?] = [strdup("PATH=/usr/bin:/bin"), nil]
        defer { for word in words + environment { free(word) } }
        var process = pid_t()
        try #require(posix_spawn(&process, worker, &actions, nil, words, environment) == 0)
        return process
    }
}
#endif
