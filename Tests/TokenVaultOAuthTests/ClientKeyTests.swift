#if OAuth
import Crypto
import CryptoExtras
import Foundation
import NIOHTTP1
import Synchronization
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth
import TokenVaultCrypto

@testable import TokenVaultOAuth

/// Clients that sign with a private key (RFC 7523 section 2.2), and the secret for Apple.
@Suite(.tags(.provider), .from(.all)) struct ClientKeyTests {
    /// A key, and a check of its signatures.
    struct Sample: Sendable, CustomTestStringConvertible {
        let algorithm: String
        let pem: String
        let isSigned: @Sendable (_ signature: Data, _ text: Data) -> Bool
        var testDescription: String { algorithm }
    }

    private static let p256 = P256.Signing.PrivateKey()

    static let samples: [Sample] = {
        let (p384, p521) = (P384.Signing.PrivateKey(), P521.Signing.PrivateKey())
        var samples = [
            Sample(algorithm: "ES256", pem: p256.pemRepresentation) { signature, text in
                (try? P256.Signing.ECDSASignature(rawRepresentation: signature)).map {
                    p256.publicKey.isValidSignature($0, for: text)
                } ?? false
            },
            Sample(algorithm: "ES384", pem: p384.pemRepresentation) { signature, text in
                (try? P384.Signing.ECDSASignature(rawRepresentation: signature)).map {
                    p384.publicKey.isValidSignature($0, for: text)
                } ?? false
            },
            Sample(algorithm: "ES512", pem: p521.pemRepresentation) { signature, text in
                (try? P521.Signing.ECDSASignature(rawRepresentation: signature)).map {
                    p521.publicKey.isValidSignature($0, for: text)
                } ?? false
            },
        ]
        // A key in the older form (SEC 1).
        let sec1 =
            [0x30, 0x77, 0x02, 0x01, 0x01, 0x04, 0x20] + Array(p256.rawRepresentation)
            + [
                0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0xa1, 0x44, 0x03,
                0x42, 0x00,
            ]
            + Array(p256.publicKey.x963Representation)
        let text = Data(sec1).base64EncodedString(options: .lineLength64Characters)
        samples.append(
            Sample(
                algorithm: "ES256",
                pem: "-----BEGIN EC PRIVATE KEY-----\n\(text)\n-----END EC PRIVATE KEY-----\n",
                isSigned: samples[0].isSigned))
        guard let rsa = SigningKey.rsaKey else { return [] }
        for pem in [rsa.pemRepresentation, rsa.pkcs8PEMRepresentation] {
            samples.append(
                Sample(algorithm: "RS256", pem: pem) { signature, text in
                    rsa.publicKey.isValidSignature(
                        _RSA.Signing.RSASignature(rawRepresentation: signature),
                        for: SHA256.hash(data: text), padding: .insecurePKCS1v1_5)
                })
        }
        return samples
    }()

    private func key(_ sample: Sample) throws -> ClientKey {
        try ClientKey(pem: Secret(utf8: sample.pem), identifier: "key-1")
    }

    /// Returns header and claims of a token that `sample` signed.
    private func parts(
        _ token: String?, signedWith sample: Sample
    ) throws -> (header: [String: String], claims: Claims) {
        let parts = try #require(token).split(separator: ".").map(String.init)
        try #require(parts.count == 3)
        let signature = Data(try #require(Base64.urlDecode(parts[2])))
        #expect(sample.isSigned(signature, Data("\(parts[0]).\(parts[1])".utf8)))
        let header = try JSONDecoder().decode(
            [String: String].self, from: Data(try #require(Base64.urlDecode(parts[0]))))
        return (
            header,
            try JSONDecoder().decode(Claims.self, from: Data(try #require(Base64.urlDecode(parts[1]))))
        )
    }

    private struct Claims: Decodable {
        let iss: String
        let sub: String
        let aud: String
        let jti: String
        let iat: Double
        let exp: Double
    }

    @Test func everyKindHasASample() { #expect(Self.samples.count == 6) }

    @Test(arguments: samples) func anAssertionAuthenticatesTheClient(_ sample: Sample) async throws {
        let server = try await ScriptedServer(always: .json(tokenAnswer))
        let clock = TestClock()
        let client = try client(server, authentication: .privateKeyJWT(try key(sample)), clock: clock)
        _ = try await refreshRequest(client).get()
        _ = try await client.clientCredentials()
        #expect(server.asked.count == 2)
        var identifiers: Set<String> = []
        for asked in server.asked {
            #expect(asked.headers["Authorization"].isEmpty && asked.form["client_secret"] == nil)
            #expect(asked.form["client_id"] == "fake-client")
            #expect(
                asked.form["client_assertion_type"]
                    == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
            let (header, claims) = try parts(asked.form["client_assertion"], signedWith: sample)
            #expect(header["alg"] == sample.algorithm && header["kid"] == "key-1")
            #expect(claims.iss == "fake-client" && claims.sub == "fake-client")
            #expect(claims.aud == "\(server.origin)/token")
            let now = clock.now.timeIntervalSince1970
            #expect(claims.iat == now && claims.exp == now + 120)
            identifiers.insert(claims.jti)
        }
        #expect(identifiers.count == 2 && !identifiers.contains(""))
    }

    /// Another server cannot replay an assertion (RFC 7523 section 3, item 3).
    @Test func anotherOriginGetsAnAssertionForItself() async throws {
        let sample = Self.samples[0]
        let (server, other) = (
            try await ScriptedServer(always: .json(tokenAnswer)), try await ScriptedServer(always: .init())
        )
        let client = try OAuthClient(
            provider: try ProviderMetadata(
                issuer: server.origin, tokenEndpoint: "\(server.origin)/token",
                revocationEndpoint: "\(other.origin)/revoke"),
            clientID: "fake-client", authentication: .privateKeyJWT(try key(sample)),
            transport: OAuthTransport())
        let revoke = try #require(client.revokeRequestProvider)
        try await revoke(TokenInfo(accessToken: "fake"))
        let asked = try #require(other.asked.first)
        let claims = try parts(asked.form["client_assertion"], signedWith: sample).claims
        #expect(claims.aud == "\(other.origin)/revoke")
    }

    /// Some providers accept one audience, some another. Each attempt has an assertion of its own.
    @Test(arguments: ["/revoke", "/token", ""]) func theProvidersAudienceIsFound(_ path: String) async throws
    {
        let sample = Self.samples[0]
        let server = try await ScriptedServer { asked in
            let origin = "http://\(asked.headers.first(name: "Host") ?? "")"
            let parts = asked.form["client_assertion"]?.split(separator: ".").map(String.init) ?? []
            let claims = parts.count == 3 ? Base64.urlDecode(parts[1]).map { Data($0) } : nil
            let audience = claims.flatMap { try? JSONDecoder().decode(Claims.self, from: $0) }?.aud
            return audience == origin + path
                ? .json(tokenAnswer) : .json(#"{"error":"invalid_client"}"#, status: 401)
        }
        let client = try client(server, authentication: .privateKeyJWT(try key(sample)))
        let revoke = try #require(client.revokeRequestProvider)
        try await revoke(TokenInfo(accessToken: "fake"))
        #expect(server.asked.count == ["/revoke": 1, "/token": 2, "": 3][path])
        // The client then knows the audience.
        let count = server.asked.count
        try await revoke(TokenInfo(accessToken: "fake"))
        #expect(server.asked.count == count + 1)
        if path != "/revoke" { _ = try await refreshRequest(client).get() }
    }

    /// A gateway that is busy has not looked at the assertion.
    @Test func aBusyGatewayAcceptsNoAudience() async throws {
        let answers = Mutex(0)
        let server = try await ScriptedServer { _ in
            let number = answers.withLock { count in
                count += 1
                return count
            }
            switch number {
            case 1: return .json("{}", status: 503)
            case 2: return .json(#"{"error":"invalid_client"}"#, status: 401)
            default: return .json(tokenAnswer)
            }
        }
        let keyed = try client(server, authentication: .privateKeyJWT(try key(Self.samples[0])))
        #expect(await refreshRequest(keyed).failure?.kind == .serverError(503))
        _ = try await refreshRequest(keyed).get()
        #expect(server.asked.count == 3)
    }

    @Test func aRefusedClientIsRefused() async throws {
        let server = try await ScriptedServer(always: .json(#"{"error":"invalid_client"}"#, status: 401))
        let keyed = try client(server, authentication: .privateKeyJWT(try key(Self.samples[0])))
        #expect(await refreshRequest(keyed).failure?.kind == .refused("invalid_client"))
        #expect(server.asked.count == 2)
        let other = try client(server, authentication: .clientSecretPost(Secret(utf8: "fake-secret")))
        #expect(await refreshRequest(other).failure?.kind == .refused("invalid_client"))
        #expect(server.asked.count == 3)
    }

    /// Programs write parameters and certificates into the same file.
    @Test func theKeyIsFoundAmongOtherBlocks() throws {
        let key = Self.samples[0].pem + "\n"
        let others = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
        for text in [
            others + key, "Bag Attributes\n    localKeyID: 01\n" + key + others,
            "\r\n" + key.replacing("\n", with: "\r\n"),
        ] {
            _ = try ClientKey(pem: Secret(utf8: text))
        }
    }

    @Test func eachRequestHasANewAppleSecret() async throws {
        let sample = Self.samples[0]
        let server = try await ScriptedServer(always: .json(tokenAnswer))
        let clock = TestClock()
        let client = try client(
            server, authentication: .appleSecret(try key(sample), teamID: "FAKETEAM"), clock: clock)
        _ = try await refreshRequest(client).get()
        clock.advance(1_000_000)
        _ = try await refreshRequest(client).get()
        #expect(server.asked.count == 2)
        for (asked, age) in zip(server.asked, [1_000_000.0, 0]) {
            #expect(asked.form["client_id"] == "fake-client" && asked.form["client_assertion"] == nil)
            let (header, claims) = try parts(asked.form["client_secret"], signedWith: sample)
            #expect(header["alg"] == "ES256" && header["kid"] == "key-1")
            #expect(claims.iss == "FAKETEAM" && claims.sub == "fake-client")
            #expect(claims.aud == server.origin)
            #expect(claims.iat == clock.now.timeIntervalSince1970 - age)
        }
    }

    @Test func onlyPrivateKeysAreAccepted() throws {
        let publicKey = Self.p256.publicKey.pemRepresentation
        let small = """
            -----BEGIN PRIVATE KEY-----
            bm90IGEga2V5
            -----END PRIVATE KEY-----
            """
        for text in ["", "fake", publicKey, small] {
            #expect(throws: OAuthError.invalidKey) {
                try ClientKey(pem: Secret(utf8: text))
            }
        }
        #expect(throws: OAuthError.invalidKey) { try ClientKey(pem: Secret([0xff, 0xfe])) }
    }

    /// Apple accepts ES256 alone, with the name of the key.
    @Test func appleNeedsItsKindOfKey() async throws {
        let server = try await ScriptedServer(always: .init())
        let unnamed = try ClientKey(pem: Secret(utf8: Self.samples[0].pem))
        for (authentication, what) in [
            (ClientAuthentication.appleSecret(unnamed, teamID: "T"), "the name of the client's key"),
            (.appleSecret(try key(Self.samples[0]), teamID: ""), "the client's team"),
        ] {
            #expect(throws: OAuthError.invalid(what)) { try client(server, authentication: authentication) }
        }
        let other = ClientAuthentication.appleSecret(try key(Self.samples[1]), teamID: "T")
        #expect(throws: OAuthError.invalidKey) { try client(server, authentication: other) }
    }

    @Test func theMetadataDecidesOnTheMethod() throws {
        let key = try key(Self.samples[0])
        func client(_ methods: [String], _ authentication: ClientAuthentication) throws(OAuthError) {
            _ = try OAuthClient(
                provider: try ProviderMetadata(
                    issuer: "https://a.example", tokenEndpoint: "https://a.example/token",
                    tokenEndpointAuthMethodsSupported: methods),
                clientID: "fake", authentication: authentication, transport: OAuthTransport())
        }
        try client(["private_key_jwt"], .privateKeyJWT(key))
        try client(["client_secret_post"], .appleSecret(key, teamID: "T"))
        #expect(throws: OAuthError.unsupported("private_key_jwt")) {
            try client(["client_secret_basic"], .privateKeyJWT(key))
        }
    }

    @Test func printingAKeyShowsNothing() throws {
        let key = try key(Self.samples[0])
        let authentication = ClientAuthentication.appleSecret(key, teamID: "T")
        for printed in [
            "\(key)", String(reflecting: key), "\(authentication)", String(reflecting: authentication),
        ] {
            #expect(!printed.contains("PRIVATE") && !printed.contains("MIG"), "\(printed)")
        }
    }
}
#endif
