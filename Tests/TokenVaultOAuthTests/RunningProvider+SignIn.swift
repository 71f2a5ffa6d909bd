#if OAuth
import Foundation
import Testing
import TokenVault
@testable import TokenVaultAuth
@testable import TokenVaultOAuth

extension RunningProvider {
    /// A transport that waits as long as a busy machine needs.
    static func transport() -> OAuthTransport {
        var configuration = OAuthTransport.Configuration()
        configuration.requestTimeout = .seconds(3_600)
        return OAuthTransport(configuration: configuration)
    }

    /// The client `name` of this provider, with its secret if it has one.
    func client(_ name: String = "browser") async throws -> OAuthClient {
        let transport = Self.transport()
        let metadata = try await ProviderMetadata.discover(issuer: issuer, transport: transport)
        let secret = facts["clients"][name]["secret"].text
        return try OAuthClient(
            provider: metadata, clientID: clientID(name),
            authentication: secret.isEmpty ? .none : .clientSecretBasic(Secret(utf8: secret)),
            transport: transport)
    }

    /// Signs `user` in, in a browser.
    func signIn(_ client: OAuthClient, user: String = "alice") async throws -> SignInResult {
        let browser = Browser()
        let result = try await client.signIn(scopes: ["openid", "email", "read"]) { address in
            browser.start { try await self.have("browse", ["url": address, "user": user]) }
        }
        let page = try await browser.page()
        #expect(page["status"].number == 200)
        #expect(page["body"].text.contains("close this window"))
        return result
    }

    /// A person at work beside the program.
    final class Browser: @unchecked Sendable {
        private var task: Task<JSON, any Error>?
        func start(_ body: @escaping @Sendable () async throws -> JSON) {
            task = Task { try await body() }
        }
        func page() async throws -> JSON { try await #require(task).value }
    }
}

extension TokenInfo {
    /// The same tokens, of which the access token is known to have ended.
    var expired: TokenInfo {
        var tokens = self
        tokens.accessTokenExpiry = Date().addingTimeInterval(-1)
        return tokens
    }
}
#endif
