#if OAuth
public import TokenVault
internal import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The way a client authenticates at the token endpoint (RFC 6749 section 2.3). Printing it shows no secret.
public enum ClientAuthentication: Sendable, Equatable {
    /// Only the client's name: for programs on users' machines, which cannot keep a secret (RFC 8252 section
    /// 8.4).
    case none
    /// The client's secret in the header (`client_secret_basic`).
    case clientSecretBasic(Secret)
    /// The client's secret in the form (`client_secret_post`).
    case clientSecretPost(Secret)
}

extension ClientAuthentication {
    /// The name in a provider's metadata (RFC 7591 section 2).
    var method: String {
        switch self {
        case .none: "none"
        case .clientSecretBasic: "client_secret_basic"
        case .clientSecretPost: "client_secret_post"
        }
    }

    /// Returns the form fields that authenticate `client`.
    func fields(of client: String) -> FormEncoding.Fields {
        switch self {
        case .none: [("client_id", client)]
        case .clientSecretBasic: []
        case .clientSecretPost(let secret):
            [("client_id", client), ("client_secret", secret.unprotectedText() ?? "")]
        }
    }

    /// Returns the `Authorization` header; `nil` for none. Name and secret are encoded before they are joined
    /// (RFC 6749 section 2.3.1), so that a colon in the name does not separate them.
    func header(of client: String) -> String? {
        guard case .clientSecretBasic(let secret) = self else { return nil }
        let pair = "\(FormEncoding.encode(client)):\(FormEncoding.encode(secret.unprotectedText() ?? ""))"
        return "Basic \(Data(pair.utf8).base64EncodedString())"
    }
}
#endif
