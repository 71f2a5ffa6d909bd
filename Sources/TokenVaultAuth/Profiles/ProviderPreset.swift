/// The settings of a well-known provider for a sign-in.
package struct ProviderPreset: Sendable {
    /// The kind of ``tenant``, for messages.
    package enum Tenant: Sendable, Equatable {
        /// The provider has one address for all.
        case none
        /// The ID of an organization, a UUID. The provider's metadata has it in lower case.
        case organization
        /// The host name of the user's own instance; the default one, if there is one.
        case host(default: String?)
    }

    /// The name that users give.
    package let name: String
    /// The issuer identifier, with `{tenant}` for the tenant.
    package let issuer: String
    package var tenant = Tenant.none
    /// The addresses of a provider without metadata.
    package var endpoints: ProviderEndpoints?
    /// The default scopes.
    package var scopes: [String] = []
    /// The provider's own parameters, besides those of the user.
    package var parameters: [String: String] = [:]
    /// The other origins of the provider that the user or a device request may be sent to.
    package var allowedOrigins: [String] = []
    /// The address that the browser returns to; `nil` for the usual one.
    package var redirect: RedirectAddress?

    /// All presets, by name.
    package static let all: [ProviderPreset] = [auth0, azure, github, gitlab, google, okta]

    /// Returns the preset called `name`.
    package static func named(_ name: String) -> ProviderPreset? { all.first { $0.name == name } }

    /// Returns the issuer identifier for `tenant`; `nil` when the tenant is missing, unexpected or invalid.
    package func issuer(for tenant: String?) -> String? {
        let name: String
        switch (self.tenant, tenant) {
        case (.none, nil): return issuer
        case (.none, _?), (.organization, nil), (.host(nil), nil): return nil
        case (_, let given?): name = given
        case (.host(let usual?), nil): name = usual
        }
        let issuer = issuer.replacing("{tenant}", with: name.lowercased())
        let isName =
            self.tenant == .organization
            ? Self.isUUID(name) : RequestOrigin(address: "https://\(name)/") != nil
        return isName && !name.contains(":") && !name.contains("/") && !name.contains("?") ? issuer : nil
    }

    private static func isUUID(_ text: String) -> Bool {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        return parts.map(\.utf8.count) == [8, 4, 4, 4, 12]
            && parts.joined().allSatisfy { $0.isASCII && $0.isHexDigit }
    }

    /// Auth0. An access token is signed only if the request has an `audience`. The issuer ends with a slash.
    private static let auth0 = ProviderPreset(
        name: "auth0", issuer: "https://{tenant}/", tenant: .host(default: nil),
        scopes: ["openid", "offline_access"])

    /// Microsoft Entra ID. Its common metadata has no real issuer, so a tenant is required. It ignores the port
    /// of `localhost`, but not the path.
    private static let azure = ProviderPreset(
        name: "azure", issuer: "https://login.microsoftonline.com/{tenant}/v2.0", tenant: .organization,
        scopes: ["openid", "offline_access"],
        allowedOrigins: [
            "https://microsoft.com", "https://www.microsoft.com", "https://login.microsoft.com",
        ],
        redirect: RedirectAddress("http://localhost"))

    /// GitHub OAuth apps, which issue no ID tokens. The issuer is the one that GitHub's answers name.
    private static let github: ProviderPreset = {
        var endpoints = ProviderEndpoints(token: "https://github.com/login/oauth/access_token")
        endpoints.authorization = "https://github.com/login/oauth/authorize"
        endpoints.deviceAuthorization = "https://github.com/login/device/code"
        endpoints.authenticationMethods = ["client_secret_post", "none"]
        return ProviderPreset(name: "github", issuer: "https://github.com/login/oauth", endpoints: endpoints)
    }()

    private static let gitlab = ProviderPreset(
        name: "gitlab", issuer: "https://{tenant}", tenant: .host(default: "gitlab.com"), scopes: ["openid"])

    /// Google, which does not support `offline_access` and issues a refresh token only after the consent page.
    private static let google = ProviderPreset(
        name: "google", issuer: "https://accounts.google.com", scopes: ["openid", "email"],
        parameters: ["access_type": "offline", "prompt": "consent"],
        allowedOrigins: ["https://oauth2.googleapis.com", "https://www.google.com"])

    private static let okta = ProviderPreset(
        name: "okta", issuer: "https://{tenant}", tenant: .host(default: nil),
        scopes: ["openid", "offline_access"])
}
