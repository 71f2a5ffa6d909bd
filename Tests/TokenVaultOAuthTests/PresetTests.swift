#if OAuth
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Synchronization
import TestLanes
import Testing
import TokenVault
@testable import TokenVaultAuth
@testable import TokenVaultOAuth

/// The known providers, each against a server that answers in the shape of that provider.
@Suite(.tags(.provider), .from(.all)) struct PresetTests {
    /// What is particular about a provider.
    struct Shape: Sendable, CustomTestStringConvertible {
        let name: String
        var tenant: String?
        /// The path of the metadata; `nil` without any.
        var metadataPath: String? = "/.well-known/openid-configuration"
        /// The issuer's path.
        var path = ""
        var metadata = ""
        /// What the token endpoint adds to an access token.
        var tokens = #","token_type":"Bearer","expires_in":3600,"refresh_token":"fake-refresh""#
        /// The parameters of the address that the browser opens.
        var asked: [String: String] = [:]
        var parameters: [String: String] = [:]
        var redirect = "http://127.0.0.1:"
        var hasIDToken = true
        /// Whether the secret is in the form (RFC 6749 section 2.3.1).
        var postsSecret = false

        var testDescription: String { name }
    }

    static let shapes = [
        // The metadata names several hosts, and a refresh token needs parameters of Google's own.
        Shape(
            name: "google",
            metadata:
                #","device_authorization_endpoint":"ORIGIN/device/code","code_challenge_methods_supported":["plain","S256"]"#
                + #","token_endpoint_auth_methods_supported":["client_secret_post","client_secret_basic"]"#,
            asked: ["access_type": "offline", "prompt": "consent", "scope": "openid email"]),
        // No metadata, no ID token, no expiry, scopes with commas (RFC 6749 section 3.3), and errors with status 200.
        Shape(
            name: "github", metadataPath: nil, path: "/login/oauth",
            tokens: #","scope":"repo,gist","token_type":"bearer""#,
            hasIDToken: false, postsSecret: true),
        // The issuer has the tenant in its path, and the browser returns to an empty path (RFC 8252 section
        // 7.3).
        Shape(
            name: "azure", tenant: "9188040d-6c67-4c5b-b112-36a304b66dad",
            metadataPath: "/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0/.well-known/openid-configuration",
            path: "/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0",
            metadata: #","cloud_instance_name":"microsoftonline.com","rbac_url":"https://pas.windows.net""#,
            tokens:
                #","token_type":"Bearer","expires_in":3600,"ext_expires_in":3600,"refresh_token":"fake-refresh""#,
            asked: ["scope": "openid offline_access"], redirect: "http://localhost:"),
        Shape(
            name: "gitlab",
            tokens:
                #","token_type":"bearer","expires_in":7200,"refresh_token":"fake-refresh","created_at":1800000000"#,
            asked: ["scope": "openid"]),
        // The issuer ends with a slash, and a signed access token needs an audience.
        Shape(
            name: "auth0", tenant: "fake.eu.auth0.com", path: "/",
            metadata: #","device_authorization_endpoint":"ORIGIN/oauth/device/code""#,
            asked: ["audience": "https://api.example.com/", "scope": "openid offline_access"],
            parameters: ["audience": "https://api.example.com/"]),
        Shape(
            name: "okta", tenant: "fake.okta.com",
            metadata:
                #","end_session_endpoint":"ORIGIN/oauth2/v1/logout","authorization_response_iss_parameter_supported":true"#,
            asked: ["scope": "openid offline_access"]),
    ]

    @Test func eachPresetIsTested() {
        #expect(Set(Self.shapes.map(\.name)) == Set(ProviderPreset.all.map(\.name)))
    }

    @Test(arguments: shapes) func aSignInAndARenewalSucceed(_ shape: Shape) async throws {
        let key = try #require(SigningKey.make("RS256"))
        let server = try await Self.server(shape, key)
        let settings = try Self.settings(shape, server.origin)
        let browser = HTTPClient(eventLoopGroupProvider: .singleton)
        let provider = OAuthSessionProvider { prompt in
            guard case .browser(let address, _) = prompt else { return }
            Task { _ = try await browser.execute(HTTPClientRequest(url: address), timeout: .seconds(3_600)) }
        }
        let signedIn = try await provider.authorize(settings, within: .seconds(3_600))
        try await browser.shutdown()
        #expect(signedIn.tokens.accessToken == "fake-access")
        #expect(signedIn.user?.identifier == (shape.hasIDToken ? "fake-user" : nil))
        let sent = try #require(server.asked.first { $0.path.hasSuffix("/authorize") })
        let query = try #require(FormEncoding.decode(sent.target.split(separator: "?", maxSplits: 1)[1]))
        for (name, value) in shape.asked { #expect(query[name] == value, "\(sent.target)") }
        #expect(query["redirect_uri"]?.hasPrefix(shape.redirect) == true, "\(sent.target)")
        let exchange = try #require(server.asked.last { $0.form["grant_type"] == "authorization_code" })
        #expect((exchange.form["client_secret"] == "fake-secret") == shape.postsSecret)
        #expect(exchange.headers.contains(name: "Authorization") == !shape.postsSecret)
        #expect(exchange.headers.first(name: "Accept")?.contains("application/json") == true)
        // Later requests need only the profile.
        let kept = try Secret(encoding: signedIn.profile).decode(Profile.self)
        let renewed = try await provider.refresh(
            RefreshRequest(
                account: "work", refreshToken: "fake-refresh", scope: nil,
                idToken: signedIn.tokens.idToken, source: kept.source, subject: nil,
                isRetryOfUnknownOutcome: false), of: kept, within: .seconds(3_600))
        #expect(renewed.accessToken == "fake-access")
        #expect(server.asked.contains { $0.form["refresh_token"] == "fake-refresh" })
    }

    /// GitHub answers each error with status 200 (RFC 6749 section 5.2 has 400).
    @Test func gitHubErrorsWithStatus200AreErrors() async throws {
        let server = try await ScriptedServer { asked in
            asked.path.hasSuffix("/code")
                ? .json(#"{"error":"device_flow_disabled","error_description":"x"}"#) : .json("{}")
        }
        var settings = try Self.settings(
            try #require(Self.shapes.first { $0.name == "github" }), server.origin)
        settings.flow = .device
        let provider = OAuthSessionProvider { _ in }
        let refused = await failure { [settings] () async throws(OAuthError) in
            try await provider.authorize(settings, within: .seconds(3_600))
        }
        #expect(refused == .requestFailed(RefreshFailure(.refused("device_flow_disabled"))))
    }

    /// A tenant is a name, and nothing that leads to another host.
    @Test func invalidTenantsAreRejected() throws {
        let issuers =
            [
                ("auth0", "fake.eu.auth0.com", "https://fake.eu.auth0.com/"), ("auth0", nil, nil),
                ("azure", "contoso.com", nil),
                (
                    "azure", "9188040D-6C67-4C5B-B112-36A304B66DAD",
                    "https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0"
                ), ("azure", nil, nil), ("azure", "a/../b", nil), ("azure", "", nil), ("okta", "a@b", nil),
                ("okta", "Fake.Okta.com", "https://fake.okta.com"), ("okta", "999", nil), ("okta", ".", nil),
                ("okta", "id..example", nil),
                ("okta", "a.example:8443", nil), ("gitlab", nil, "https://gitlab.com"),
                ("gitlab", "gitlab.example.com", "https://gitlab.example.com"), ("google", "a", nil),
                ("google", nil, "https://accounts.google.com"), ("okta", "a?b", nil), ("okta", "a#b", nil),
            ] as [(String, String?, String?)]
        for (name, tenant, issuer) in issuers {
            #expect(try #require(ProviderPreset.named(name)).issuer(for: tenant) == issuer, "\(name)")
        }
    }

    private static func settings(_ shape: Shape, _ origin: String) throws -> SignInSettings {
        let preset = try #require(ProviderPreset.named(shape.name))
        let issuer = try #require(preset.issuer(for: shape.tenant))
        let real = try #require(RequestOrigin(address: issuer)).text
        var settings = SignInSettings(issuer: issuer.replacing(real, with: origin), clientID: "fake")
        settings.clientSecret = "fake-secret"
        settings.scopes = preset.scopes
        settings.redirect = preset.redirect
        settings.parameters = preset.parameters.merging(shape.parameters) { $1 }
        if var endpoints = preset.endpoints {
            endpoints.token = endpoints.token.replacing(real, with: origin)
            endpoints.authorization = endpoints.authorization?.replacing(real, with: origin)
            endpoints.deviceAuthorization = endpoints.deviceAuthorization?.replacing(real, with: origin)
            settings.endpoints = endpoints
        }
        return settings
    }

    private static func server(_ shape: Shape, _ key: SigningKey) async throws -> ScriptedServer {
        let nonce = Mutex<String?>(nil)
        return try await ScriptedServer { asked in
            let origin = "http://\(asked.headers.first(name: "Host") ?? "")"
            if asked.path == shape.metadataPath {
                let document =
                    #"{"issuer":"\#(origin)\#(shape.path)","authorization_endpoint":"\#(origin)/authorize","#
                    + #""token_endpoint":"\#(origin)/token","jwks_uri":"\#(origin)/keys""#
                    + shape.metadata.replacing("ORIGIN", with: origin) + "}"
                return .json(document)
            }
            if asked.path == "/keys" { return .json(#"{"keys":[\#(key.jwk)]}"#) }
            if asked.path.hasSuffix("/authorize") {
                let query = asked.target.split(separator: "?", maxSplits: 1).last.flatMap {
                    FormEncoding.decode($0)
                }
                nonce.withLock { $0 = query?["nonce"] }
                let issuer = FormEncoding.encode("\(origin)\(shape.path)")
                let named = shape.metadata.contains("iss_parameter") ? "&iss=\(issuer)" : ""
                let answer = "?code=fake-code&state=\(query?["state"] ?? "")\(named)"
                return ScriptedServer.Reply(
                    status: 302, headers: [("Location", (query?["redirect_uri"] ?? "") + answer)])
            }
            guard asked.method == "POST" else { return .json("{}", status: 404) }
            let now = Int(Date().timeIntervalSince1970)
            let claims =
                #"{"iss":"\#(origin)\#(shape.path)","aud":"fake","sub":"fake-user","iat":\#(now),"exp":\#(now + 3_600)"#
                + (nonce.withLock { $0 }.map { #","nonce":"\#($0)""# } ?? "") + "}"
            let idToken =
                shape.hasIDToken ? (try? key.sign(claims)).map { #","id_token":"\#($0)""# } ?? "" : ""
            return .json(#"{"access_token":"fake-access"\#(shape.tokens)\#(idToken)}"#)
        }
    }
}
#endif
