#if OAuth
import Crypto
import CryptoExtras
import Foundation
import Synchronization
import TestLanes
import Testing
import TokenVault
import TokenVaultCrypto
@testable import TokenVaultAuth
@testable import TokenVaultOAuth

/// A provider that publishes keys, and the validator of a client of it.
final class KeyProvider: Sendable {
    let server: ScriptedServer
    let clock = TestClock()
    let validator: IDTokenValidator
    private let published: Published

    private final class Published: Sendable {
        let keys = Mutex<String?>(nil)
    }

    init(
        _ keys: [SigningKey], algorithms: [String]? = nil,
        _ configure: (inout IDTokenValidator.Configuration) -> Void = { _ in }
    )
        async throws
    {
        let published = Published()
        self.published = published
        server = try await ScriptedServer { _ in
            published.keys.withLock { $0 }.map { .json($0) } ?? .init(status: 500)
        }
        var configuration = IDTokenValidator.Configuration()
        configure(&configuration)
        validator = IDTokenValidator(
            provider: try metadata(server.origin, jwksURI: "\(server.origin)/keys", algorithms: algorithms),
            clientID: "fake-client", configuration: configuration, transport: OAuthTransport(),
            clock: clock.read)
        publish(keys.map(\.jwk))
    }

    func publish(_ keys: [String]?) {
        published.keys.withLock { $0 = keys.map { "{\"keys\":[\($0.joined(separator: ","))]}" } }
    }

    /// How often the keys were fetched.
    var fetches: Int { server.asked.count }

    /// The claims of a token that is good now, with some replaced; `nil` removes one. Values are JSON.
    func claims(_ changes: [String: String?] = [:]) -> String {
        let now = Int(clock.now.timeIntervalSince1970)
        var members: [String: String] = [
            "iss": "\"\(server.origin)\"", "sub": "\"fake-person\"", "aud": "\"fake-client\"",
            "exp": "\(now + 600)", "iat": "\(now - 5)", "nonce": "\"fake-nonce\"",
        ]
        for (name, value) in changes { members[name] = value }
        return "{"
            + members.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",")
            + "}"
    }

    func problem(
        _ token: String, _ expectation: IDTokenExpectation = IDTokenExpectation(nonce: "fake-nonce"),
        serverDate: Date? = nil
    ) async -> IDTokenProblem? {
        let error = await failure { () async throws(OAuthError) in
            try await validator.validate(token, expecting: expectation, serverDate: serverDate)
        }
        guard case .invalidIDToken(let problem) = error else { return nil }
        return problem
    }
}

/// ID tokens that are right, and every way in which one is not.
@Suite(.tags(.provider), .from(.all)) struct IDTokenTests {
    @Test(arguments: ["RS256", "PS256", "ES256", "ES384", "EdDSA"])
    func aTokenThatIsRightIsTaken(_ algorithm: String) async throws {
        let key = try #require(SigningKey.make(algorithm))
        let provider = try await KeyProvider([key])
        let claims = try await provider.validator.validate(
            try key.sign(provider.claims(["email": "\"a@example.com\"", "email_verified": "\"true\""])),
            expecting: IDTokenExpectation(nonce: "fake-nonce"))
        #expect(claims.subject == "fake-person")
        #expect(claims.audience == ["fake-client"])
        #expect(claims.email == "a@example.com")
        #expect(claims.isEmailVerified == true)
        #expect(claims.expiry == provider.clock.now.addingTimeInterval(600))
        // Changes a letter of the signature, and one of the signed part.
        let token = try key.sign(provider.claims())
        for place in [token.count - 10, token.count / 2] {
            var letters = Array(token)
            letters[place] = letters[place] == "A" ? "B" : "A"
            #expect(await provider.problem(String(letters)) == .signature || place != token.count - 10)
            #expect(await provider.problem(String(letters)) != nil)
        }
    }

    @Test(
        arguments: [
            (["iss": "\"https://other.example\""], IDTokenProblem.issuer), (["iss": "\"\""], .issuer),
            (["aud": "\"other\""], .audience), (["aud": "[]"], .audience),
            (["aud": #"["fake-client","other"]"#], .audience),
            (["aud": #"["fake-client","fake-client"]"#], .authorizedParty),
            (["azp": "\"other\""], .authorizedParty),
            (["exp": "1799999000"], .expired), (["exp": "1799999940"], .expired), (["exp": "0"], .expired),
            (["iat": "1800000100"], .notYetValid), (["nbf": "1800000100"], .notYetValid),
            (["nonce": "\"other\""], .nonce), (["nonce": nil], .nonce), (["nonce": "\"\""], .nonce),
            (["iss": nil], .malformed), (["sub": nil], .malformed), (["aud": nil], .malformed),
            (["exp": nil], .malformed), (["iat": nil], .malformed), (["sub": "\"\""], .malformed),
            (["exp": "\"1800000600\""], .malformed), (["exp": "1e300"], .malformed),
            (["exp": "-1"], .malformed),
            (["sub": "7"], .malformed), (["aud": "7"], .malformed),
        ] as [([String: String?], IDTokenProblem)])
    func claimsThatAreWrongAreRefused(_ changes: [String: String?], _ problem: IDTokenProblem) async throws {
        let key = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([key])
        #expect(await provider.problem(try key.sign(provider.claims(changes))) == problem)
    }

    @Test(arguments: [
        ["exp": "1799999941"], ["iat": "1800000060"], ["nbf": "1800000060"], ["azp": "\"fake-client\""],
        ["aud": #"["fake-client"]"#], ["unknown": "{}"],
    ])
    func claimsAtTheEdgeAreTaken(_ changes: [String: String]) async throws {
        let key = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([key])
        #expect(await provider.problem(try key.sign(provider.claims(changes))) == nil)
    }

    @Test func otherAudiencesHaveToBeTrustedAndTheClientNamed() async throws {
        let key = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([key]) { $0.trustedAudiences = ["friend"] }
        let both = #"["friend","fake-client"]"#
        #expect(await provider.problem(try key.sign(provider.claims(["aud": both]))) == .authorizedParty)
        let named = try key.sign(provider.claims(["aud": both, "azp": "\"fake-client\""]))
        #expect(await provider.problem(named) == nil)
    }

    @Test func aTrustedClientMayBeTheParty() async throws {
        let key = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([key]) { $0.trustedAudiences = ["friend"] }
        #expect(await provider.problem(try key.sign(provider.claims(["azp": "\"friend\""]))) == nil)
        #expect(
            await provider.problem(try key.sign(provider.claims(["azp": "\"other\""]))) == .authorizedParty)
    }

    /// A claim that describes the user does not end a sign-in. One that limits the token does.
    @Test(arguments: ["auth_time", "email", "name", "preferred_username"])
    func anOptionalClaimThatCannotBeReadCountsAsAbsent(_ name: String) async throws {
        let key = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([key])
        for value in [#"{"a":1}"#, "[]", "null", "7"] where name != "auth_time" || value != "7" {
            let claims = try await provider.validator.validate(
                try key.sign(provider.claims([name: value])),
                expecting: IDTokenExpectation(nonce: "fake-nonce", accessToken: "fake"))
            #expect(claims.email == nil && claims.name == nil && claims.isEmailVerified == nil)
        }
        for limit in ["azp", "nbf", "at_hash"] {
            #expect(await provider.problem(try key.sign(provider.claims([limit: "[]"]))) == .malformed)
        }
        // A required claim of the wrong type counts as wrong rather than absent.
        let token = try key.sign(provider.claims(["nonce": "7"]))
        #expect(await provider.problem(token) == .nonce)
    }

    /// Only a clear yes makes an address verified.
    @Test(arguments: [
        ("true", true), ("1", true), ("\"true\"", true), ("0", false), ("[]", false), ("{}", false),
        ("\"yes\"", false),
    ])
    func anUnclearAddressIsNotVerified(_ value: String, _ isVerified: Bool) async throws {
        let key = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([key])
        let claims = try await provider.validator.validate(
            try key.sign(provider.claims(["email": "\"a@example.com\"", "email_verified": value])),
            expecting: IDTokenExpectation(nonce: "fake-nonce"))
        #expect(claims.email == "a@example.com" && claims.isEmailVerified == isVerified)
    }

    /// A client's own secret signs, if the provider offers it and the secret is long enough.
    @Test(
        arguments: [
            (["RS256", "HS256"], 32, true), (["RS256", "HS256"], 31, false), (["RS256"], 32, false),
            (nil, 32, false),
        ] as [([String]?, Int, Bool)])
    func aClientsSecretSignsWhereItIsOffered(_ algorithms: [String]?, _ length: Int, _ isTaken: Bool)
        async throws
    {
        let rsa = try #require(SigningKey.make("RS256"))
        let secret = String(repeating: "s", count: length)
        let provider = try await KeyProvider([rsa], algorithms: algorithms) {
            $0.clientSecret = Secret(utf8: secret)
        }
        let shared = SigningKey(algorithm: "HS256", kind: .shared(Array(secret.utf8)))
        #expect(await provider.problem(try shared.sign(provider.claims())) == (isTaken ? nil : .algorithm))
        #expect(await provider.problem(try rsa.sign(provider.claims())) == nil)
        guard isTaken else { return }
        let other = SigningKey(algorithm: "HS256", kind: .shared(Array("x\(secret)".utf8)))
        #expect(await provider.problem(try other.sign(provider.claims())) == .signature)
        // Neither a public key nor the secret under another algorithm's name is accepted.
        for forged in [
            Array(rsa.jwk.utf8), Array(try #require(SigningKey.rsaKey).publicKey.pemRepresentation.utf8),
        ] {
            let token = try SigningKey(algorithm: "HS256", kind: .shared(forged)).sign(provider.claims())
            #expect(await provider.problem(token) == .signature)
        }
        let named = SigningKey(algorithm: "RS256", kind: .shared(Array(secret.utf8)))
        #expect(await provider.problem(try named.sign(provider.claims())) == .signature)
        let hash = Base64.urlText(Array(SHA256.hash(data: Data("fake".utf8)).prefix(16)))
        let bound = try shared.sign(provider.claims(["at_hash": "\"\(hash)\""]))
        #expect(
            await provider.problem(bound, IDTokenExpectation(nonce: "fake-nonce", accessToken: "other"))
                == .accessTokenHash)
    }

    @Test func timesAreThoseOfTheServersClock() async throws {
        let key = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([key])
        // This machine's clock is a day behind the clock of the provider.
        let token = try key.sign(provider.claims(["iat": "1800086400", "exp": "1800087000"]))
        #expect(await provider.problem(token) == .notYetValid)
        let serverDate = provider.clock.now.addingTimeInterval(86_400)
        #expect(await provider.problem(token, serverDate: serverDate) == nil)
    }

    @Test(arguments: ["RS256", "ES384", "EdDSA"])
    func theAccessTokenItCameWithIsHeldAgainstIt(_ algorithm: String) async throws {
        let key = try #require(SigningKey.make(algorithm))
        let provider = try await KeyProvider([key])
        let digest =
            algorithm == "ES384"
            ? Array(SHA384.hash(data: Data("fake-access".utf8)).prefix(24))
            : Array(SHA256.hash(data: Data("fake-access".utf8)).prefix(16))
        let token = try key.sign(provider.claims(["at_hash": "\"\(Base64.urlText(digest))\""]))
        let right = IDTokenExpectation(nonce: "fake-nonce", accessToken: "fake-access")
        let wrong = IDTokenExpectation(nonce: "fake-nonce", accessToken: "fake-other")
        #expect(await provider.problem(token, right) == nil)
        #expect(await provider.problem(token, wrong) == (algorithm == "EdDSA" ? nil : .accessTokenHash))
        #expect(await provider.problem(try key.sign(provider.claims()), wrong) == nil)
    }

    /// The standard's own example (OpenID Connect Core appendix A.3).
    @Test func theStandardsHash() {
        let hash = SigningAlgorithm.rs256.halfDigest(of: "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y")
        #expect(hash.map { Base64.urlText($0) } == "77QmUPtjPfzWtF2AnpK9RQ")
    }

    @Test func howLongAgoThePersonSignedIn() async throws {
        let key = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([key])
        let expectation = IDTokenExpectation(nonce: "fake-nonce", maximumAge: .seconds(100))
        let fresh = try key.sign(provider.claims(["auth_time": "1799999900"]))
        let old = try key.sign(provider.claims(["auth_time": "1799999800"]))
        #expect(await provider.problem(fresh, expectation) == nil)
        #expect(await provider.problem(old, expectation) == .expired)
        #expect(await provider.problem(try key.sign(provider.claims()), expectation) == .expired)
    }

    // MARK: Algorithms

    @Test func unsignedTokensAreRefused() async throws {
        let provider = try await KeyProvider([try #require(SigningKey.make("RS256"))])
        for algorithm in ["none", "None", "NONE", "nOnE", ""] {
            let token = try SigningKey(algorithm: algorithm, kind: .none).sign(provider.claims())
            #expect(await provider.problem(token) == .algorithm)
        }
        #expect(provider.fetches == 0)
    }

    /// The classic: the public key, which everybody has, as the secret of HS256.
    @Test func aPublicKeyIsNoSecret() async throws {
        let key = try #require(SigningKey.make("RS256"))
        let provider = try await KeyProvider([key])
        let pem = try #require(SigningKey.rsaKey).publicKey.pemRepresentation
        for secret in [Array(pem.utf8), Array(key.jwk.utf8), []] {
            let token = try SigningKey(algorithm: "HS256", kind: .shared(secret)).sign(provider.claims())
            #expect(await provider.problem(token) == .algorithm)
            // The name of an accepted algorithm does not help either.
            let claimed = try SigningKey(algorithm: "RS256", kind: .shared(secret)).sign(provider.claims())
            #expect(await provider.problem(claimed) == .signature)
        }
        let shared = SigningKey(algorithm: "HS256", kind: .shared(Array("fake-secret".utf8)))
        provider.publish([shared.jwk])
        #expect(await provider.problem(try shared.sign(provider.claims())) == .algorithm)
    }

    /// Points of small order, and others that no secret belongs to: under the first of them what is signed so is good, whatever
    /// it is.
    @Test(arguments: [
        [1], [0], [UInt8](repeating: 0xff, count: 31) + [0x7f],
        [0xec] + [UInt8](repeating: 0xff, count: 30) + [0x7f],
        [2],
    ])
    func aPointThatIsNoKeyVerifiesNothing(_ point: [UInt8]) async throws {
        func text(_ bytes: some Sequence<UInt8>) -> String {
            Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
                .replacing("=", with: "")
        }
        let provider = try await KeyProvider([])
        let x = point + [UInt8](repeating: 0, count: 32 - point.count)
        provider.publish([#"{"kty":"OKP","crv":"Ed25519","kid":"key-1","x":"\#(text(x))"}"#])
        let signed = text(#"{"alg":"EdDSA","kid":"key-1"}"#.utf8) + "." + text(provider.claims().utf8)
        let token = signed + "." + text([1] + [UInt8](repeating: 0, count: 63))
        #expect(await provider.problem(token) == .signature)
    }

    /// RFC 8725 section 3.11.
    @Test(arguments: [
        (nil, true), ("JWT", true), ("jwt", true), ("at+jwt", false), ("application/AT+JWT", false),
        ("logout+jwt", false),
    ])
    func aTokenOfAnotherKindIsNone(_ type: String?, _ isTaken: Bool) async throws {
        let key = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([key])
        let member = type.map { #","typ":"\#($0)""# } ?? ""
        let token = try key.sign(provider.claims(), header: #"{"alg":"ES256","kid":"key-1"\#(member)}"#)
        #expect((await provider.problem(token) == nil) == isTaken)
    }

    @Test func aKeyOfAnotherTypeIsNotTried() async throws {
        let rsa = try #require(SigningKey.make("RS256"))
        let curve = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([rsa])
        #expect(await provider.problem(try curve.sign(provider.claims())) == .unknownKey)
    }

    @Test func aKeyIsForItsOwnAlgorithmAndUse() async throws {
        let key = try #require(SigningKey.make("RS256"))
        for member in [#""alg":"PS256""#, #""use":"enc""#] {
            let provider = try await KeyProvider([])
            provider.publish(["{\(member)," + key.jwk.dropFirst()])
            #expect(await provider.problem(try key.sign(provider.claims())) == .unknownKey)
        }
        let provider = try await KeyProvider([])
        provider.publish([#"{"alg":"RS256","use":"sig","# + key.jwk.dropFirst()])
        #expect(await provider.problem(try key.sign(provider.claims())) == nil)
    }

    /// RFC 7517 section 4.3.
    @Test(arguments: [
        (#"["verify"]"#, true), (#"["sign","verify"]"#, true), (#"["encrypt"]"#, false), ("[]", false),
    ])
    func aKeyThatIsNotForVerifyingVerifiesNothing(_ operations: String, _ isTaken: Bool) async throws {
        let key = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([])
        provider.publish([#"{"key_ops":\#(operations),"# + key.jwk.dropFirst()])
        let problem = await provider.problem(try key.sign(provider.claims()))
        #expect(problem == (isTaken ? nil : .unknownKey))
    }

    @Test func onlyWhatTheProviderListsIsTaken() async throws {
        let key = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([key], algorithms: ["RS256", "HS256"])
        #expect(await provider.problem(try key.sign(provider.claims())) == .algorithm)
        let narrow = try await KeyProvider([key]) { $0.algorithms = [.rs256] }
        #expect(await narrow.problem(try key.sign(narrow.claims())) == .algorithm)
    }

    @Test func theKeyOfTheHeaderIsNotBelieved() async throws {
        let key = try #require(SigningKey.make("RS256"))
        let other = try #require(SigningKey.make("RS256", other: true))
        let provider = try await KeyProvider([key])
        for member in [#""jwk":\#(other.jwk)"#, #""jku":"\#(provider.server.origin)/other""#] {
            let token = try other.sign(
                provider.claims(), header: #"{"alg":"RS256","kid":"key-1",\#(member)}"#)
            #expect(await provider.problem(token) == .signature)
        }
        #expect(provider.server.asked.allSatisfy { $0.target == "/keys" })
    }

    @Test func tokensThatAreNoneAreRefused() async throws {
        let key = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([key])
        let token = try key.sign(provider.claims())
        let parts = token.split(separator: ".").map(String.init)
        let wrong = [
            "", ".", "..", "...", parts[0] + "." + parts[1], token + ".x", token + "=", token + " ",
            "é." + parts[1] + "." + parts[2], parts[1] + "." + parts[1] + "." + parts[2],
            try key.sign(provider.claims(), header: #"{"alg":"ES256","kid":"key-1","crit":["b64"]}"#),
            try key.sign(provider.claims(), header: "[]"), try key.sign("[]"), try key.sign(""),
            String(repeating: "a", count: 300 << 10) + "." + parts[1] + "." + parts[2],
        ]
        for token in wrong { #expect(await provider.problem(token) == .malformed) }
    }

    // MARK: Refreshing

    private func renewed(
        _ changes: [String: String?], keys: ScriptedServer.Reply.Stall? = nil, revocation: Int = 200,
        bySubject subject: String? = nil,
        asked: @escaping @Sendable (ScriptedServer.Asked) -> Void = { _ in }
    ) async throws -> Result<TokenRefreshResponse, RefreshFailure> {
        let key = try #require(SigningKey.make("ES256"))
        let said = Mutex("")
        let server = try await ScriptedServer { request in
            asked(request)
            if request.path == "/revoke" { return .init(status: revocation) }
            guard request.path == "/keys" else { return .json(said.withLock { $0 }) }
            return keys.map { ScriptedServer.Reply(stall: $0) } ?? .json("{\"keys\":[\(key.jwk)]}")
        }
        let clock = TestClock()
        var client = try client(server, clock: clock)
        client.idTokenPatience = keys != nil ? .milliseconds(1) : .seconds(3_600)
        let now = Int(clock.now.timeIntervalSince1970)
        func token(_ changes: [String: String?]) throws -> String {
            var members: [String: String] = [
                "iss": "\"\(server.origin)\"", "sub": "\"p\"", "aud": "\"fake-client\"", "exp": "\(now + 60)",
                "iat": "\(now)",
            ]
            for (name, value) in changes { members[name] = value }
            return try key.sign(
                "{" + members.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",") + "}")
        }
        let next = try token(changes)
        said.withLock {
            $0 = #"{"access_token":"a","token_type":"Bearer","refresh_token":"r","id_token":"\#(next)"}"#
        }
        return await refreshRequest(
            client, idToken: subject == nil ? try token([:]) : nil, subject: subject)
    }

    @Test func aNewIDTokenOfTheSamePersonIsTaken() async throws {
        #expect(try await renewed([:]).get().idToken != nil)
    }

    @Test(arguments: ["sub", "iss", "aud"])
    func aNewIDTokenOfAnotherIsASessionOfAnother(_ name: String) async throws {
        let revoked = Mutex<[String]>([])
        let failure = try await renewed([name: "\"other\""]) { asked in
            guard asked.path == "/revoke" else { return }
            revoked.withLock { $0.append(asked.form["token"] ?? "") }
        }.failure
        #expect(failure?.kind == .refused("id_token_mismatch"))
        // The token that was sent is used up, and the tokens in the answer are revoked.
        #expect(failure?.leavesOutcomeUnknown == true && failure?.isTemporary == false)
        #expect(revoked.withLock { $0 } == ["r", "a"])
    }

    /// Where the session has no ID token any more, the subject of the sign-in counts.
    @Test func aNewIDTokenIsComparedWithTheSubject() async throws {
        #expect(try await renewed([:], bySubject: "p").get().idToken != nil)
        let failure = try await renewed([:], bySubject: "q").failure
        #expect(failure?.kind == .refused("id_token_mismatch"))
    }

    @Test func tokensOfAnotherThatCannotBeRevokedAreTold() async throws {
        let failure = try #require(try await renewed(["sub": "\"other\""], revocation: 503).failure)
        #expect(failure.kind == .refused("id_token_mismatch") && failure.leavesTokens)
        #expect("\(failure)".contains("could not be revoked"))
    }

    /// The user has signed in when the keys do not come. The client undoes the sign-in, also when its task is
    /// cancelled meanwhile. Where it cannot undo the sign-in, it says so.
    @Test(arguments: [200, 503], [false, true])
    func aSignInWhoseKeysDoNotComeIsUndone(_ revocation: Int, _ isCancelled: Bool) async throws {
        let keysAsked = Signal()
        let server = try await ScriptedServer { request in
            switch request.path {
            case "/token":
                return .json(
                    #"{"access_token":"a","token_type":"Bearer","refresh_token":"r","id_token":"\#(fakeIDToken)"}"#
                )
            case "/keys":
                keysAsked.give()
                return ScriptedServer.Reply(stall: .beforeHead)
            default: return .init(status: revocation)
            }
        }
        var client = try client(server)
        client.signInPatience = isCancelled ? .seconds(3_600) : .milliseconds(1)
        let device = try DeviceAuthorization(
            Array(
                #"{"device_code":"d","user_code":"u","verification_uri":"https://id.example.com","expires_in":600}"#
                    .utf8),
            begun: client.clock(), scopes: ["openid"])
        let signIn = Task { [client] in
            await failure { () async throws(OAuthError) in try await client.signIn(with: device) }
        }
        await keysAsked.wait()
        if isCancelled { signIn.cancel() }
        let reason: OAuthError = isCancelled ? .cancelled : .requestFailed(RefreshFailure(.timedOut))
        #expect(await signIn.value == (revocation == 200 ? reason : .tokensNotRevoked(reason)))
        #expect(server.asked.filter { $0.path == "/revoke" }.map { $0.form["token"] } == ["r", "a"])
    }

    /// A token with a signature that no key made.
    private let fakeIDToken = "eyJhbGciOiJFUzI1NiJ9.e30." + String(repeating: "A", count: 86)

    /// The tokens do not wait for keys that do not come.
    @Test(arguments: [ScriptedServer.Reply.Stall.beforeHead, .inBody])
    func keysThatDoNotComeAreNotWaitedFor(_ stall: ScriptedServer.Reply.Stall) async throws {
        let response = try await renewed([:], keys: stall).get()
        #expect(response.refreshToken == "r" && response.idToken == nil)
    }

    /// The refresh token was rotated. The client keeps it though the ID token is invalid.
    @Test(arguments: [["exp": "1"], ["at_hash": "\"AAAA\""]])
    func aRotatedTokenIsKeptWhenTheIDTokenIsWrong(_ changes: [String: String]) async throws {
        let response = try await renewed(changes).get()
        #expect(response.refreshToken == "r")
        #expect(response.idToken == nil)
    }
}
#endif
