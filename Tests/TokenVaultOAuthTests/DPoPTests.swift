#if OAuth
import Crypto
import Foundation
import NIOHTTP1
import Synchronization
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth
import TokenVaultCrypto

@testable import TokenVaultOAuth

/// Tokens that are bound to a key (RFC 9449).
@Suite(.tags(.provider), .from(.all)) struct DPoPTests {
    /// A token endpoint that issues bound tokens. With `nonces`, each proof needs the next of them.
    private static func server(
        type: String = "DPoP", nonces: [String] = []
    ) async throws -> ScriptedServer {
        let count = Mutex(0)
        return try await ScriptedServer { asked in
            guard asked.path == "/token" else { return .json("{}") }
            let proof = asked.proof
            let number = count.withLock { count in
                count += 1
                return count
            }
            let demanded = nonces.isEmpty ? nil : nonces[min(number, nonces.count) - 1]
            guard proof?.nonce == demanded else {
                return .json(
                    #"{"error":"use_dpop_nonce"}"#, status: 400,
                    headers: [("DPoP-Nonce", nonces[min(number + 1, nonces.count) - 1])])
            }
            return .json(
                #"{"access_token":"fake-\#(number)","token_type":"\#(type)","expires_in":60,"#
                    + #""refresh_token":"fake-refresh-\#(number)"}"#)
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

    /// The example of RFC 9449 section 6.1, and the one of RFC 9449 section 7.1.
    @Test func thePublishedVectorsHold() throws {
        let x = try #require(Base64.urlDecode("l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs"[...]))
        let y = try #require(Base64.urlDecode("9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA"[...]))
        #expect(
            DPoPKey.thumbprint(x: Base64.urlText(x), y: Base64.urlText(y))
                == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")
        #expect(
            ReadProof.hash("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU")
                == "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo")
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
        for url in ["", "api.example.com", "ftp://api.example.com/"] {
            let error = await failure { () async throws(OAuthError) in
                try await key.proof(method: "GET", url: url)
            }
            #expect(error == .invalid("the address of the request"))
        }
    }

    @Test(arguments: ["", "fake", P384.Signing.PrivateKey().pemRepresentation])
    func anotherKeyIsRefused(_ pem: String) async {
        let error = await failure { () async throws(OAuthError) in try DPoPKey(pem: Secret(utf8: pem)) }
        #expect(error == .invalid("the session's key"))
    }

    /// The browser's address, the code and each refresh name the same key, and the next sign-in another one.
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

    /// A token that any thief can use is not what the client asked for.
    @Test(arguments: ["Bearer", "bearer", ""])
    func aTokenWithoutAKeyIsRevoked(_ type: String) async throws {
        let server = try await Self.server(type: type)
        let client = try Self.client(server)
        let error = await failure { () async throws(OAuthError) in
            do { _ = try await Self.signIn(client) } catch let error as OAuthError { throw error } catch {}
        }
        #expect(error == .unsupported("DPoP"))
        let revoked = server.asked.filter { $0.path == "/revoke" }.map { $0.form["token"] }
        #expect(revoked == ["fake-refresh-1", "fake-1"])
    }

    /// The stored session may go on, so nothing is revoked, and no token without a key replaces one with a key.
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

    @Test func aTokenOfAKeyThatIsNotThisClientsIsRefused() async throws {
        let server = try await Self.server()
        var client = try Self.client(server)
        client.usesDPoP = false
        let error = await failure { [client] () async throws(OAuthError) in
            do { _ = try await Self.signIn(client) } catch let error as OAuthError { throw error } catch {}
        }
        #expect(error == .unsupported("bearer tokens"))
        #expect(server.asked[0].headers["DPoP"].isEmpty)
    }

    /// RFC 9449 section 8: the same request again, with another proof. The next request begins with the last nonce.
    @Test func aNonceThatTheProviderDemandsIsSent() async throws {
        let server = try await Self.server(nonces: ["", "n-1", "n-1"])
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
        #expect(server.asked.count == 3)
    }

    /// A provider that never accepts a nonce is not asked without end, and the refresh token is as good as before.
    @Test func aNonceIsSentOnceOnly() async throws {
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
    }

    /// A response can bring a nonce that cannot be put into a proof.
    @Test(arguments: ["", "a b", "\"", String(repeating: "n", count: 2_049)])
    func aNonceThatIsNoneIsIgnored(_ nonce: String) async throws {
        let server = try await ScriptedServer(
            always: .json(
                #"{"error":"use_dpop_nonce"}"#, status: 400, headers: [("DPoP-Nonce", nonce)]))
        let client = try Self.client(server)
        let error = await failure { () async throws(OAuthError) in
            do { _ = try await Self.signIn(client) } catch let error as OAuthError { throw error } catch {}
        }
        guard case .requestFailed(let reason) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(reason.kind == .refused("use_dpop_nonce") && server.asked.count == 1)
    }

    /// A nonce that is demanded is no reason to try another audience, and the other audience comes with a nonce.
    @Test func aNonceGoesWithAnAssertion() async throws {
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

    @Test func aDeviceAndAnExchangeProveTheKey() async throws {
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

    @Test func aProviderWithOtherAlgorithmsIsNotAsked() async throws {
        let server = try await Self.server()
        let provider = try ProviderMetadata(
            issuer: server.origin, authorizationEndpoint: "\(server.origin)/authorize",
            tokenEndpoint: "\(server.origin)/token", dpopSigningAlgValuesSupported: ["EdDSA"])
        var client = try OAuthClient(provider: provider, clientID: "fake", transport: OAuthTransport())
        client.usesDPoP = true
        let error = await failure { [client] () async throws(OAuthError) in
            try client.authorizationRequest(redirectURI: "http://127.0.0.1/callback", scopes: [])
        }
        #expect(error == .unsupported("DPoP with ES256"))
        let listed =
            #"{"issuer":"\#(server.origin)","token_endpoint":"\#(server.origin)/token","#
            + #""dpop_signing_alg_values_supported":["EdDSA"]}"#
        let read = try MetadataDocument.metadata(in: Array(listed.utf8), of: server.origin)
        #expect(read.dpopSigningAlgValuesSupported == ["EdDSA"])
    }
}
#endif
