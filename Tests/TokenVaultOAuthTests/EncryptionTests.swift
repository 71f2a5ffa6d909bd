#if OAuth
import AsyncHTTPClient
import Foundation
import NIOHTTP1
import NIOSSL
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth
@testable import TokenVaultOAuth

/// Clients send nothing to a server that does not prove its identity.
@Suite(.tags(.provider), .from(.all), .serialized) struct EncryptionTests {
    private static let path = "/o/.well-known/openid-configuration"
    private let provider: RunningProvider

    init() throws { provider = try RunningProvider() }

    /// A server with a certificate for `name`, and the settings that trust it.
    private func server(
        named name: String, _ more: [String: String] = [:]
    ) throws -> (origin: RequestOrigin, trust: TLSConfiguration) {
        let server = try provider.tell("encrypt", more.merging(["name": name]) { $1 })
        var trust = TLSConfiguration.makeClientConfiguration()
        trust.trustRoots = .certificates(
            try NIOSSLCertificate.fromPEMBytes(Array(server["certificate"].text.utf8)))
        return (RequestOrigin(scheme: "https", host: "127.0.0.1", port: server["port"].number), trust)
    }

    private func answer(_ origin: RequestOrigin, _ trust: TLSConfiguration?) async throws -> Int? {
        var configuration = OAuthTransport.Configuration()
        configuration.requestTimeout = .seconds(3_600)
        configuration.tlsConfiguration = trust
        let address = try #require(
            WebAddress("https://\(origin.host):\(origin.port)\(Self.path)"))
        do throws(RefreshFailure) {
            return try await OAuthTransport(configuration: configuration).get(address).status
        } catch {
            // The refresh token was not sent, so it is still valid.
            #expect(error.kind == .notSent)
            return nil
        }
    }

    private func requests() throws -> Int { try provider.tell("requests")["requests"].count }

    @Test func aCertificateThatIsTrustedIsEnough() async throws {
        let (origin, trust) = try server(named: "127.0.0.1")
        #expect(try await answer(origin, trust) == 200)
        #expect(try requests() == 1)
    }

    /// Clients refuse old versions and ciphers without forward secrecy, even if the caller allows them.
    @Test(arguments: [
        ("TLSv1_1", "ALL", false), ("TLSv1", "ALL", false), ("TLSv1_2", "AES128-GCM-SHA256", false),
        ("TLSv1_2", "ECDHE-RSA-AES128-SHA", false), ("TLSv1_2", "ECDHE-RSA-AES128-GCM-SHA256", true),
        ("TLSv1_2", "ECDHE-RSA-CHACHA20-POLY1305", true), ("TLSv1_3", "ALL", true),
    ])
    func encryptionHasForwardSecrecy(_ version: String, _ ciphers: String, _ isUsed: Bool)
        async throws
    {
        var (origin, trust) = try server(named: "127.0.0.1", ["version": version, "ciphers": ciphers])
        #expect(try await answer(origin, trust) == (isUsed ? 200 : nil))
        trust.minimumTLSVersion = .tlsv1
        if !isUsed { trust.maximumTLSVersion = .tlsv12 }
        trust.cipherSuites = "ALL"
        #expect(try await answer(origin, trust) == (isUsed ? 200 : nil))
        #expect(try requests() == (isUsed ? 2 : 0))
        // The same holds for a request with a token.
        let manager = TokenManager(storage: InMemoryTokenStorage(service: "s"), account: "a") { _ in
            throw RefreshFailure(.notSent)
        }
        try await manager.updateTokens(TokenInfo(accessToken: "fake"))
        var configuration = HTTPClient.Configuration(tlsConfiguration: trust)
        configuration.connectionPool.retryConnectionEstablishment = false
        let client = AuthorizedHTTPClient(
            authorizer: TokenAuthProvider(manager: manager, allowedOrigins: [origin]),
            configuration: configuration)
        let response = try? await client.execute(
            HTTPClientRequest(url: "https://127.0.0.1:\(origin.port)\(Self.path)"))
        #expect(response?.status.code == (isUsed ? 200 : nil))
        // The settings of a single request cannot weaken the encryption either.
        var request = HTTPClientRequest(url: "https://127.0.0.1:\(origin.port)\(Self.path)")
        request.tlsConfiguration = trust
        #expect((try? await client.execute(request))?.status.code == (isUsed ? 200 : nil))
        #expect(try requests() == (isUsed ? 4 : 0))
    }

    @Test func aCertificateThatNobodyTrustsIsRefused() async throws {
        let (origin, _) = try server(named: "127.0.0.1")
        #expect(try await answer(origin, nil) == nil)
        let other = try server(named: "127.0.0.1").trust
        #expect(try await answer(origin, other) == nil)
        #expect(try requests() == 0)
    }

    @Test func aTrustedCertificateOfAnotherNameIsRefused() async throws {
        let (origin, trust) = try server(named: "a.example")
        #expect(try await answer(origin, trust) == nil)
        #expect(try requests() == 0)
    }

    /// The same for requests with a token.
    @Test func noTokenIsSentWhereACertificateIsRefused() async throws {
        let (origin, trust) = try server(named: "127.0.0.1")
        let manager = TokenManager(storage: InMemoryTokenStorage(service: "s"), account: "a") { _ in
            throw RefreshFailure(.notSent)
        }
        try await manager.updateTokens(TokenInfo(accessToken: "fake"))
        let authorizer = TokenAuthProvider(manager: manager, allowedOrigins: [origin])
        let request = HTTPClientRequest(url: "https://127.0.0.1:\(origin.port)\(Self.path)")
        // A refused connection is reported at once, instead of being tried again.
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.retryConnectionEstablishment = false
        await #expect(throws: (any Error).self) {
            try await AuthorizedHTTPClient(authorizer: authorizer, configuration: configuration).execute(
                request)
        }
        #expect(try requests() == 0)
        configuration.tlsConfiguration = trust
        let answer = try await AuthorizedHTTPClient(authorizer: authorizer, configuration: configuration)
            .execute(request, timeout: .seconds(3_600))
        #expect(answer.status == .ok)
        #expect(try provider.tell("requests")["requests"][0]["authorization"]["scheme"].text == "Bearer")
    }
}
#endif
