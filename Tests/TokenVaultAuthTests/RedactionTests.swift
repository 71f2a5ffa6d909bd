import Testing
import TokenVault

@testable import TokenVaultAuth

/// No token is ever printed.
@Suite struct RedactionTests {
    private let scene = TestFixture()
    private let sentinel = "S3NT1NEL"

    private func prints(_ value: some Any) -> [String] {
        var dumped = ""
        dump(value, to: &dumped)
        return [String(describing: value), String(reflecting: value), "\(value)", dumped]
    }

    @Test func nothingThatHoldsTokensShowsThem() async throws {
        let tokens = TokenInfo(
            accessToken: "\(sentinel)-access", refreshToken: "\(sentinel)-refresh", idToken: "\(sentinel)-id",
            scope: "openid")
        let record = SessionRecord.beginning(tokens, at: scene.clock.now)
        let response = TokenRefreshResponse(accessToken: sentinel, refreshToken: sentinel, idToken: sentinel)
        let request = RefreshRequest(
            account: "work", refreshToken: sentinel, scope: nil, isRetryOfUnknownOutcome: false)
        let manager = scene.manager(RotatingServer())
        try await manager.updateTokens(tokens)
        var texts = prints(tokens) + prints(record) + prints(response) + prints(request) + prints(manager)
        texts += prints(AccessToken(record)) + prints([tokens]) + prints(manager.board.snapshot)
        texts += prints(
            try await TokenAuthProvider(manager: manager, allowedOrigins: []).manager.accessToken())
        for text in texts { #expect(!text.contains(sentinel), "\(text.prefix(200))") }
    }

    @Test func noErrorRepeatsWhatAServerSaid() {
        let failures = [
            RefreshFailure(.refused("\(sentinel) in a text of the server's")), RefreshFailure(.refused("")),
            RefreshFailure(.serverError(500)),
        ]
        for failure in failures {
            #expect(!"\(failure)".contains(sentinel))
            #expect(!"\(TokenError.refreshFailed(failure, retryAfter: nil))".contains(sentinel))
        }
        #expect("\(RefreshFailure(.refused("invalid_client")))".contains("invalid_client"))
    }

    @Test func whatAProviderThrowsIsNotRepeated() async throws {
        struct Chatty: Error { let token: String }
        let sentinel = sentinel
        let scene = scene
        let manager = TokenManager(
            storage: scene.storage, account: "work", configuration: scene.configuration
        ) { request in
            throw Chatty(token: "\(sentinel) \(request.refreshToken)")
        }
        try await manager.updateTokens(
            TokenInfo(accessToken: "a", refreshToken: sentinel, accessTokenExpiry: scene.clock.now))
        do {
            _ = try await manager.validAccessToken()
            Issue.record("the call returned a token")
        } catch {
            for text in prints(error) { #expect(!text.contains(sentinel)) }
        }
    }
}
