#if OAuth
import Crypto
import Foundation
import NIOHTTP1
import Synchronization
import TestLanes
import Testing
import TokenVault
import TokenVaultCrypto

@testable import TokenVaultAuth
@testable import TokenVaultOAuth

/// Tokens that are bound to a key (RFC 9449).
@Suite(.tags(.provider), .from(.all)) struct DPoPTests {
    /// Returns a token endpoint that issues bound tokens. With `nonces`, each request needs the next nonce. The answer of
    /// a success has the nonce `later`.
    private static func server(
        type: String? = "DPoP", nonces: [String] = [], later: String? = nil
    ) async throws -> ScriptedServer {
        let count = Counter()
        return try await ScriptedServer { asked in
            guard asked.path == "/token" else { return .json("{}") }
            let proof = asked.proof
            let number = count.next()
            let demanded = nonces.isEmpty ? nil : nonces[min(number, nonces.count) - 1]
            guard proof?.nonce == demanded else {
                return .json(
                    #"{"error":"use_dpop_nonce"}"#, status: 400,
                    headers: [("DPoP-Nonce", nonces[min(number + 1, nonces.count) - 1])])
            }
            return .json(
                #"{"access_token":"fake-\#(number)",\#(type.map { #""token_type":"\#($0)","# } ?? "")"expires_in":60,"#
                    + #""refresh_token":"fake-refresh-\#(number)"}"#,
                headers: later.map { [("DPoP-Nonce", $0)] } ?? [])
        }
    }

    private static func client(
        _ server: ScriptedServer, clock: TestClock = TestClock(),
        authentication: ClientAuthentication = .none
    ) throws -> OAuthClient {
        var client = try TokenVaultOAuthTests.client(server, authentication: authentication, clock: clock)
        client.usesDPoP = true
        return client
    }

    /// Signs in as a browser would, and returns the request with the result.
    private static func signIn(
        _ client: OAuthClient
    ) async throws -> (request: AuthorizationRequest, tokens: TokenInfo) {
        let request = try client.authorizationRequest(
            redirectURI: "http://127.0.0.1:1/callback", scopes: ["read"])
        let state = try #require(request.state.unprotectedText())
        return (request, try await client.signIn(request, callback: "?code=c&state=\(state)").tokens)
    }

    /// Returns the failure of a sign-in.
    private static func signInFailure(_ client: OAuthClient) async -> OAuthError? {
        do { _ = try await signIn(client) } catch { return error as? OAuthError }
        return nil
    }

    /// The examples of RFC 9449 sections 6.1 and 7.1.
    @Test func thePublishedVectorsHold() async throws {
        #expect(
            DPoPKey.thumbprint(
                x: "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
                y: "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA")
                == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")
        let proof = try await DPoPKey().proof(
            method: "GET", url: "https://resource.example.org/protectedresource",
            accessToken: Secret(utf8: "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"))
        #expect(try #require(ReadProof(proof)).tokenHash == "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo")
    }

    @Test func aProofIsForOneRequest() async throws {
        let key = DPoPKey()
        let url = "https://api.example.com:8443/a%20b?secret=1#part"
        var identifiers: Set<String> = []
        for _ in 0..<50 {
            let text = try await key.proof(
                method: "POST", url: url, accessToken: Secret(utf8: "fake-token"), nonce: "n-1",
                at: Date(timeIntervalSince1970: 1_800_000_000))
            let proof = try #require(ReadProof(text))
            #expect(proof.method == "POST" && proof.url == "https://api.example.com:8443/a%20b")
            #expect(proof.nonce == "n-1" && proof.time == 1_800_000_000)
            #expect(proof.tokenHash == ReadProof.hash("fake-token"))
            #expect(proof.thumbprint == key.thumbprint)
            identifiers.insert(proof.identifier)
        }
        #expect(identifiers.count == 50)
        let other = try #require(ReadProof(try await DPoPKey().proof(method: "GET", url: url)))
        #expect(other.thumbprint != key.thumbprint && other.tokenHash == nil && other.nonce == nil)
        #expect(try DPoPKey(pem: key.pem) == key)
        for (url, expected) in [
            ("https://api.example.com", "https://api.example.com/"),
            ("HTTPS://API.Example.com:443/A?b={c}|d", "https://api.example.com/A"),
            ("https://api.example.com?b#c", "https://api.example.com/"),
            ("http://localhost:8080/a", "http://localhost:8080/a"),
        ] {
            #expect(ReadProof(try await key.proof(method: "GET", url: url))?.url == expected)
        }
        for url in ["", "api.example.com", "ftp://api.example.com/"] {
            let error = await failure { () async throws(OAuthError) in
                try await key.proof(method: "GET", url: url)
            }
            #expect(error == .invalid("the address of the request"))
        }
    }

    @Test(arguments: ["", "fake", P384.Signing.PrivateKey().pemRepresentation])
    func aKeyThatIsNotOnP256IsRejected(_ pem: String) async {
        let error = await failure { () async throws(OAuthError) in try DPoPKey(pem: Secret(utf8: pem)) }
        #expect(error == .invalid("the session's key"))
    }

    /// The authorization request, the code exchange and each refresh use one key. The next sign-in uses another key.
    @Test func aSessionHasOneKey() async throws {
        let server = try await Self.server()
        let clock = TestClock()
        let client = try Self.client(server, clock: clock)
        let (request, tokens) = try await Self.signIn(client)
        let key = try #require(tokens.dpopKey)
        #expect(tokens.tokenType == "DPoP")
        let thumbprint = try DPoPKey(pem: key).thumbprint
        #expect(request.url.contains("dpop_jkt=\(thumbprint)"))
        var configuration = TokenManager.Configuration()
        configuration.clock = clock.read
        let storage = InMemoryTokenStorage(service: "s")
        let manager = client.tokenManager(storage: storage, account: "a", configuration: configuration)
        try await manager.updateTokens(tokens)
        for expected in ["fake-2", "fake-3"] {
            clock.advance(59)
            let other = client.tokenManager(storage: storage, account: "a", configuration: configuration)
            #expect(try await other.validAccessToken() == expected)
            #expect(try await other.currentTokens()?.dpopKey == key)
        }
        #expect(server.asked.count == 3)
        for asked in server.asked {
            let proof = try #require(asked.proof)
            #expect(proof.thumbprint == thumbprint && proof.method == "POST" && proof.tokenHash == nil)
            #expect(proof.url == "\(server.origin)/token")
        }
        #expect(try await Self.signIn(client).tokens.dpopKey != key)
    }

    /// The client requested bound tokens, so a bearer token is revoked.
    @Test(arguments: ["Bearer", "bearer", "", nil])
    func aBearerTokenIsRevoked(_ type: String?) async throws {
        let server = try await Self.server(type: type)
        let client = try Self.client(server)
        let error = await Self.signInFailure(client)
        #expect(error == .unsupported("DPoP"))
        let revoked = server.asked.filter { $0.path == "/revoke" }.map { $0.form["token"] }
        #expect(revoked == ["fake-refresh-1", "fake-1"])
    }

    /// The stored session may continue, so nothing is revoked. No bearer token replaces a bound token.
    @Test func aRefreshThatLosesTheKeyIsUnusable() async throws {
        let server = try await Self.server(type: "Bearer")
        let client = try Self.client(server)
        let request = RefreshRequest(
            forwarding: "fake", scope: nil, idToken: nil, dpopKey: DPoPKey().pem,
            isRetryOfUnknownOutcome: false)
        let error = await #expect(throws: RefreshFailure.self) { try await client.refresh(request) }
        #expect(error?.kind == .unusable(200))
        #expect(server.asked.map(\.path) == ["/token"])
    }

    @Test func aBoundTokenThatWasNotRequestedIsRejected() async throws {
        let server = try await Self.server()
        var client = try Self.client(server)
        client.usesDPoP = false
        let error = await Self.signInFailure(client)
        #expect(error == .unsupported("bearer tokens"))
        #expect(server.asked[0].headers["DPoP"].isEmpty)
    }

    /// RFC 9449 section 8: the request is repeated with a new proof. The next request uses the last nonce, also that of
    /// a success.
    @Test func aNonceThatTheProviderDemandsIsSent() async throws {
        let server = try await Self.server(nonces: ["", "n-1", "n-2"], later: "n-2")
        let client = try Self.client(server)
        let (_, tokens) = try await Self.signIn(client)
        #expect(tokens.accessToken == "fake-2")
        let proofs = server.asked.map { $0.proof }
        #expect(proofs.map { $0?.nonce } == [nil, "n-1"])
        #expect(proofs[0]?.identifier != proofs[1]?.identifier)
        #expect(server.asked[0].form["code"] == "c" && server.asked[0].form == server.asked[1].form)
        _ = try await client.refresh(
            RefreshRequest(
                forwarding: "fake", scope: nil, idToken: nil, dpopKey: tokens.dpopKey,
                isRetryOfUnknownOutcome: false))
        #expect(server.asked.count == 3 && server.asked[2].proof?.nonce == "n-2")
    }

    /// A provider that accepts no nonce gets two requests. The failure leaves the refresh token valid.
    @Test func aDemandForANonceIsAnsweredOnce() async throws {
        let request = RefreshRequest(
            forwarding: "fake", scope: nil, idToken: nil, dpopKey: DPoPKey().pem,
            isRetryOfUnknownOutcome: false)
        let refusing = try await ScriptedServer { asked in
            .json(
                #"{"error":"use_dpop_nonce"}"#, status: 401,
                headers: [
                    ("DPoP-Nonce", "n-\(asked.proof?.identifier ?? "")")
                ])
        }
        let refused = try Self.client(refusing)
        let error = await #expect(throws: RefreshFailure.self) { try await refused.refresh(request) }
        #expect(error?.kind == .refused("use_dpop_nonce") && refusing.asked.count == 2)
        #expect(error?.leavesOutcomeUnknown == false)
    }

    /// A response can bring a nonce that cannot be put into a proof.
    @Test(arguments: ["", "a b", "\"", String(repeating: "n", count: 2_049)])
    func anInvalidNonceIsIgnored(_ nonce: String) async throws {
        let server = try await ScriptedServer(
            always: .json(
                #"{"error":"use_dpop_nonce"}"#, status: 400, headers: [("DPoP-Nonce", nonce)]))
        let client = try Self.client(server)
        let error = await Self.signInFailure(client)
        guard case .requestFailed(let reason) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(reason.kind == .refused("use_dpop_nonce") && server.asked.count == 1)
    }

    /// A demand for a nonce does not change the audience. The request with the next audience also has the nonce.
    @Test func anAssertionAndANonceAreSentTogether() async throws {
        let server = try await ScriptedServer { asked in
            let proof = asked.proof
            guard proof?.nonce == "n-1" else {
                return .json(
                    #"{"error":"use_dpop_nonce"}"#, status: 400, headers: [("DPoP-Nonce", "n-1")])
            }
            let claims = (asked.form["client_assertion"] ?? "").split(separator: ".")
            let payload = claims.count == 3 ? Base64.urlDecode(claims[1]) ?? [] : []
            guard !String(decoding: payload, as: UTF8.self).contains("token") else {
                return .json(#"{"error":"invalid_client"}"#, status: 401)
            }
            return .json(#"{"access_token":"fake","token_type":"DPoP"}"#)
        }
        let key = try ClientKey(pem: Secret(utf8: P256.Signing.PrivateKey().pemRepresentation))
        let client = try Self.client(server, authentication: .privateKeyJWT(key))
        #expect(try await client.clientCredentials().tokens.dpopKey != nil)
        #expect(server.asked.count == 3)
        #expect(Set(server.asked.map { $0.form["client_assertion"] }).count == 3)
    }

    @Test func aDeviceSignInAndAnExchangeSendProofs() async throws {
        let server = try await ScriptedServer { asked in
            if asked.path == "/device" {
                return .json(
                    #"{"device_code":"fake","user_code":"AB","expires_in":900,"verification_uri":"https://a.example"}"#
                )
            }
            guard asked.proof != nil else { return .init(status: 400) }
            return .json(#"{"access_token":"fake","token_type":"dpop"}"#)
        }
        let client = try Self.client(server)
        let tokens = try await client.signIn(with: try await client.authorizeDevice(scopes: [])).tokens
        let key = try DPoPKey(pem: try #require(tokens.dpopKey))
        let exchanged = try await client.exchange(tokens.accessSecret, dpopKey: key).tokens
        #expect(exchanged.dpopKey == key.pem && exchanged.tokenType == "DPoP")
        let proofs = server.asked.compactMap { $0.proof }
        #expect(proofs.map(\.thumbprint) == [key.thumbprint, key.thumbprint])
    }

    @Test func aProviderWithoutES256IsRejected() async throws {
        let server = try await Self.server()
        let client = { (algorithms: [String]) in
            let provider = try ProviderMetadata(
                issuer: server.origin, authorizationEndpoint: "\(server.origin)/authorize",
                tokenEndpoint: "\(server.origin)/token",
                deviceAuthorizationEndpoint: "\(server.origin)/device",
                dpopSigningAlgValuesSupported: algorithms)
            var client = try OAuthClient(
                provider: provider, clientID: "fake",
                authentication: .clientSecretPost(Secret(utf8: "fake-secret")), transport: OAuthTransport())
            client.usesDPoP = true
            return client
        }
        #expect(try await Self.signIn(client(["EdDSA", "ES256"])).tokens.dpopKey != nil)
        let requests = server.asked.count
        let refused = try client(["EdDSA"])
        let errors = [
            await Self.signInFailure(refused),
            await failure { () async throws(OAuthError) in try await refused.authorizeDevice(scopes: []) },
            await failure { () async throws(OAuthError) in try await refused.clientCredentials() },
        ]
        #expect(errors == Array(repeating: .unsupported("DPoP with ES256"), count: 3))
        #expect(server.asked.count == requests)
        let listed =
            #"{"issuer":"\#(server.origin)","token_endpoint":"\#(server.origin)/token","#
            + #""dpop_signing_alg_values_supported":["EdDSA"]}"#
        let read = try MetadataDocument.metadata(in: Array(listed.utf8), of: server.origin)
        #expect(read.dpopSigningAlgValuesSupported == ["EdDSA"])
    }

    /// A stored key that was lost or damaged does not lead to a request without a proof.
    @Test(arguments: ["", "damaged"]) func aProfileForBoundTokensNeedsTheKey(_ key: String) async throws {
        let server = try await Self.server(type: "Bearer")
        var settings = SignInSettings(issuer: server.origin, clientID: "fake")
        settings.usesDPoP = true
        let metadata = #"{"issuer":"\#(server.origin)","token_endpoint":"\#(server.origin)/token"}"#
        let profile = Profile(settings, metadata: metadata, authentication: .none)
        let provider = OAuthSessionProvider { _ in }
        let request = RefreshRequest(
            forwarding: "fake", scope: nil, idToken: nil, dpopKey: key.isEmpty ? nil : Secret(utf8: key),
            isRetryOfUnknownOutcome: false)
        let exchange = TokenExchange(
            token: "fake", audience: "a", resources: [], scopes: [], dpopKey: key.isEmpty ? nil : key)
        let errors = [
            await failure { () async throws(OAuthError) in
                try await provider.refresh(request, of: profile, within: .seconds(60))
            },
            await failure { () async throws(OAuthError) in
                try await provider.exchange(exchange, of: profile, within: .seconds(60))
            },
        ]
        #expect(errors == Array(repeating: .invalid("the session's key"), count: 2))
        #expect(server.asked.isEmpty)
    }

    /// An older program would drop the key at the next refresh, so it does not know the record.
    @Test func aRecordWithAKeyHasAVersionOfItsOwn() throws {
        var tokens = TokenInfo(accessToken: "fake", tokenType: "DPoP")
        #expect(SessionRecord.beginning(tokens, at: Date()).version == 1)
        tokens.dpopKey = DPoPKey().pem
        let record = SessionRecord.beginning(tokens, at: Date())
        #expect(record.version == 2)
        #expect(try Secret(encoding: record).decode(SessionRecord.self) == record)
    }

    @Test func anExchangedBearerTokenIsRevoked() async throws {
        let server = try await Self.server(type: "Bearer")
        let client = try Self.client(server)
        let error = await failure { () async throws(OAuthError) in
            try await client.exchange(Secret(utf8: "fake"), dpopKey: DPoPKey())
        }
        #expect(error == .unsupported("DPoP"))
        #expect(server.asked.map(\.path) == ["/token", "/revoke", "/revoke"])
    }

    /// A request whose answer would come too late is not sent: the refresh token would be lost with the answer.
    @Test func aNonceThatComesLateIsNotUsed() async throws {
        let server = try await Self.server(nonces: ["", "n-1"])
        var client = try Self.client(server)
        client.end = .now
        let request = RefreshRequest(
            forwarding: "fake", scope: nil, idToken: nil, dpopKey: DPoPKey().pem,
            isRetryOfUnknownOutcome: false)
        let late = client
        let error = await #expect(throws: RefreshFailure.self) { try await late.refresh(request) }
        #expect(error?.kind == .refused("use_dpop_nonce") && server.asked.count == 1)
    }

    /// Servers do not see each other's nonces.
    @Test func eachServerHasItsNonce() {
        let nonces = DPoPNonces()
        let origins = (0...100).map { RequestOrigin(scheme: "https", host: "a\($0).example", port: 443) }
        nonces.note("n-0", of: origins[0])
        nonces.note("n-1", of: origins[1])
        #expect(origins.prefix(3).map { nonces.value($0) } == ["n-0", "n-1", nil])
        for origin in origins { nonces.note("n", of: origin) }
        #expect(origins.count { nonces.value($0) != nil } == 1)
        #expect(nonces.value(origins[100]) == "n")
    }
}
#endif
