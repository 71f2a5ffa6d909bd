import Foundation
import OAuthWire
import ProgramSupport
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth

@testable import vaultctl

/// What `login` and `token` make of a worker's replies, without a provider.
@Suite(.tags(.programs), .from(.usual)) struct SignInTests {
    /// What became of a refresh crosses the two programs without loss: whether the token may have been used hangs on it.
    @Test(arguments: [
        RefreshFailure.Kind.invalidGrant, .refused("invalid_client"), .throttled, .notSent, .serverError(503),
        .unusable(302), .interrupted, .timedOut,
    ])
    func aRefreshFailureCrossesWithoutLoss(_ kind: RefreshFailure.Kind) throws {
        let failure = RefreshFailure(
            kind, retryAfter: Date(timeIntervalSince1970: 1_800_000_000.5),
            serverDate: Date(timeIntervalSince1970: 1_799_999_999))
        let sent = try Secret(encoding: WorkerReply.failed(WorkerFailure(failure)))
        guard case .failed(let received) = try sent.decode(WorkerReply.self) else {
            Issue.record("the reply is of another kind")
            return
        }
        #expect(received.refreshFailure == failure)
    }

    /// A failure that no answer was the reason of is never one that ends a session.
    @Test(arguments: WorkerFailure.Kind.allCases)
    func onlyTheProviderEndsASession(_ kind: WorkerFailure.Kind) {
        let failure = WorkerFailure(kind).refreshFailure
        #expect((failure.kind == .invalidGrant) == (kind == .invalidGrant))
        // Each kind also has an exit status and a message.
        let told = CommandFailure(WorkerFailure(kind))
        #expect(told.status != .done && told.status != .locked && told.status != .damaged)
        #expect(!told.happened.isEmpty && !told.advice.isEmpty)
    }

    @Test func aRequestAndARefreshCross() throws {
        var settings = SignInSettings(issuer: "https://id.example.com", clientID: "fake")
        settings.clientSecret = "not a real secret"
        let profile = Profile(settings, metadata: "{}", authentication: .post)
        let refresh = RefreshRequest(
            forwarding: "not-a-real-token", scope: "read", idToken: "a.b.c", subject: "fake",
            dpopKey: Secret(utf8: "not a real key"), isRetryOfUnknownOutcome: true)
        let request = WorkerRequest(
            .refresh(WorkerRequest.Refresh(refresh), profile), within: .seconds(25))
        #expect(try Secret(encoding: request).decode(WorkerRequest.self) == request)
        let prove = WorkerRequest(
            .prove(
                ProofRequest(
                    key: "not a real key", token: "not-a-real-token",
                    target: ProofTarget(method: "GET", url: "https://api.example.com/", nonce: "n"))),
            within: .seconds(25))
        #expect(try Secret(encoding: prove).decode(WorkerRequest.self) == prove)
        let proved = WorkerReply.proved("not.a.real-proof")
        #expect(try Secret(encoding: proved).decode(WorkerReply.self) == proved)
        let reply = WorkerReply.refreshed(
            WorkerReply.Refreshed(
                TokenRefreshResponse(
                    accessToken: "not-a-real-token", expiresIn: 3_600, refreshToken: "nor-this",
                    refreshTokenExpiresIn: 86_400, idToken: "a.b.c", tokenType: "Bearer", scope: "read",
                    serverDate: Date(timeIntervalSince1970: 1_800_000_000))))
        #expect(try Secret(encoding: reply).decode(WorkerReply.self) == reply)
        for printed in ["\(request)", "\(prove)", "\(proved)", "\(reply)", String(reflecting: reply)] {
            #expect(!printed.contains("real") && !printed.contains("nor-this"))
        }
    }

    /// The addresses that the program starts a browser with, or asks the user to open.
    @Test(arguments: [
        ("https://id.example.com/authorize?a=b&c=%20", true), ("https://id.example.com:8443", true),
        ("http://127.0.0.1:8000/o/authorize?x=y", true), ("http://localhost/", true),
        ("http://[::1]:1/", true),
        ("http://127.0.0.1.evil.example/", false), ("http://localhost.evil.example/", false),
        ("http://localhost@evil.example/", false), ("http://127.0.0.1@evil.example/", false),
        ("http://id.example.com/", false), ("https://", false), ("https:///path", false),
        ("https://id.example.com/ --flag", false), ("https://a@id.example.com/", false),
        ("https://id.example.com/\u{1b}[2J", false), ("https://id.example.com/\n", false),
        ("file:///etc/passwd", false), ("javascript:alert(1)", false), ("--help", false), ("", false),
        ("https://id.example.com/" + String(repeating: "x", count: 8_192), false),
    ])
    func onlyAnAddressOfTheWebIsShown(_ address: String, _ isFit: Bool) {
        #expect(SignInConversation.isFit(address) == isFit)
    }

    /// As a shell takes it back.
    @Test(arguments: [
        ("work", "vaultctl login work"), ("me@example.com", "vaultctl login me@example.com"),
        ("at work", "vaultctl login 'at work'"), ("it's", "vaultctl login 'it'\\''s'"),
        ("-x", "vaultctl login -- -x"), ("$(id)", "vaultctl login '$(id)'"),
    ])
    func aProfileIsNamedForAShell(_ name: String, _ command: String) {
        #expect(CommandFailure.notSignedIn(name).advice == "run \"\(command)\"")
    }

    /// 10 when the provider may have heard, 8 otherwise, whatever it was.
    @Test(arguments: [
        (OAuthProgram.WorkerError.timedOut, Int32(10)), (.ended(1), 10), (.misunderstood, 10),
        (.failed(WorkerFailure(.notSent)), 8), (.failed(WorkerFailure(.interrupted)), 10),
        (.failed(WorkerFailure(.unusable)), 8), (.failed(WorkerFailure(.timedOut)), 10),
        (.failed(WorkerFailure(.noAnswer)), 10),
        (.failed(WorkerFailure(.serverError)), 8),
        (.failed(WorkerFailure(.refused, "invalid_client")), 8),
    ])
    func whoWasNotToldHasAStatus(_ trouble: OAuthProgram.WorkerError, _ status: Int32) {
        let failure = CommandFailure(untold: trouble).afterSigningOut
        #expect(failure.status.rawValue == status)
        #expect(failure.happened.hasPrefix("signed out here"))
    }

    /// The message does not report an unusable answer as a broken connection.
    @Test(arguments: [
        (302, "gave an answer that cannot be used (302)"), (403, "gave an answer that cannot be used (403)"),
        (200, "gave an answer that cannot be used"),
    ])
    func anAnswerOfNoUseIsSaidToBeOne(_ status: Int, _ words: String) {
        let failure = RefreshFailure(.unusable(status))
        let trouble = OAuthProgram.WorkerError.failed(WorkerFailure(failure))
        let refresh = CommandFailure(.refreshFailed(failure, retryAfter: nil), trouble, "work")
        for told in [refresh, CommandFailure(untold: trouble), CommandFailure(trouble, isSignIn: true)] {
            #expect(told.happened.contains(words) && !told.happened.contains("broke"), "\(told.happened)")
        }
    }

    /// The user has to end a session that goes on at the provider and that no program holds.
    @Test func tokensThatAreLeftAtTheProviderAreSaidToBe() throws {
        var mismatch = RefreshFailure(.refused("id_token_mismatch"))
        mismatch.leavesTokens = true
        var late = WorkerFailure(.noAnswer)
        late.leavesTokens = true
        #expect(WorkerFailure(mismatch).refreshFailure == mismatch)
        let trouble = OAuthProgram.WorkerError.failed(WorkerFailure(mismatch))
        for told in [
            CommandFailure(.refreshFailed(mismatch, retryAfter: nil), trouble, "work"),
            CommandFailure(WorkerFailure(mismatch)), CommandFailure(late),
        ] {
            #expect(told.happened.split(separator: "could not be revoked").count == 1, "\(told.happened)")
            #expect(told.happened.contains("could not be revoked"), "\(told.happened)")
            #expect(told.advice.contains("at the provider's own page"))
        }
        #expect(!CommandFailure(late).happened.contains("the sign-in was not completed"))
    }

    @Test(arguments: ["work", "\u{301}work", "\u{20d0}", "a/b"])
    func aProfileIsListedByItsWholeName(_ name: String) {
        let listed = ProfileStore.name(of: TokenKey(ProfileStore.profiles + name))
        #expect(Array(listed.utf8) == Array(name.utf8))
    }

    /// Neither what moves the cursor nor what turns the direction of what stands around it.
    @Test(arguments: [
        "\u{1b}", "\u{7f}", "\u{9b}", "\u{61c}", "\u{200e}", "\u{200f}", "\u{202a}", "\u{202e}", "\u{2028}",
        "\u{2066}", "\u{2069}", "\u{ad}", "\u{200b}", "\u{200d}", "\u{2060}", "\u{2064}", "\u{fff9}",
        "\u{34f}", "\u{3164}", "\u{e0100}", "\u{1d173}", "\u{2800}", "\u{180b}", "\u{feff}",
        "\u{e0001}", "\u{e007f}",
    ])
    func whatIsPrintedControlsNothing(_ control: String) {
        #expect(CommandFailure.printable("a\(control)b") == "a?b")
        #expect(CommandFailure.printable("é\u{2026}ש🔑❤\u{fe0f}") == "é\u{2026}ש🔑❤\u{fe0f}")
    }

    @Test func theRevocationEndpointIsFound() {
        var profile = Profile(
            SignInSettings(issuer: "https://id.example.com", clientID: "fake"),
            metadata: #"{"issuer":"https://id.example.com"}"#, authentication: .none)
        #expect(!profile.offersRevocation)
        profile.metadata = #"{"revocation_endpoint":"https://id.example.com/revoke"}"#
        #expect(profile.offersRevocation)
    }

    @Test(arguments: [
        (TokenError.tokenNotFound, Int32(3)), (.refreshTokenMissing, 3),
        (.refreshTokenExpired, 3), (.sessionExpired, 3), (.sessionChanged, 9),
        (.timedOut, 10), (.unknownRecord, 8), (.malformed("a token"), 1),
        (.storage(TokenStorageError(.locked, operation: "retrieve", backend: "file")), 4),
        (.notSaved(TokenStorageError(.noSpace, operation: "store", backend: "file")), 1),
        (.refreshFailed(RefreshFailure(.notSent), retryAfter: nil), 8),
        (.refreshFailed(RefreshFailure(.throttled), retryAfter: Date()), 8),
        (.refreshFailed(RefreshFailure(.serverError(500)), retryAfter: nil), 8),
        (.refreshFailed(RefreshFailure(.refused("invalid_client")), retryAfter: nil), 5),
        (.refreshFailed(RefreshFailure(.interrupted), retryAfter: nil), 10),
        (.refreshFailed(RefreshFailure(.timedOut), retryAfter: nil), 10),
        (.refreshFailed(RefreshFailure(.unusable(302)), retryAfter: nil), 10),
        (.notRevoked(RefreshFailure(.notSent)), 8),
    ])
    func everyReasonHasItsStatus(_ error: TokenError, _ status: Int32) {
        #expect(CommandFailure(error, nil, "work").status.rawValue == status)
    }

    /// There was time for one request, and it was answered. The advice does not send the user to look at the
    /// network.
    @Test func anAnswerIsNotForgottenForLackOfTime() {
        let trouble = OAuthProgram.WorkerError.failed(WorkerFailure(RefreshFailure(.serverError(503))))
        let told = CommandFailure(
            .refreshFailed(RefreshFailure(.notSent), retryAfter: nil), trouble, "work")
        #expect(told.happened.contains("503") && told.advice == "try again later", "\(told.happened)")
        let unsent = OAuthProgram.WorkerError.failed(WorkerFailure(RefreshFailure(.notSent)))
        let early = CommandFailure(.refreshFailed(RefreshFailure(.notSent), retryAfter: nil), unsent, "work")
        #expect(early.advice.contains("network"), "\(early.advice)")
    }
}
