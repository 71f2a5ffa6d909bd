#if OAuth
public import TokenVault

/// The way a client authenticates at the token endpoint (RFC 6749 section 2.3). Printing it shows no secret.
public enum ClientAuthentication: Sendable, Equatable {
    /// Only the client's name: for programs on users' machines, which cannot keep a secret (RFC 8252 section
    /// 8.4).
    case none
    /// The client's secret in the header (`client_secret_basic`).
    case clientSecretBasic(Secret)
    /// The client's secret in the form (`client_secret_post`).
    case clientSecretPost(Secret)
    /// An assertion that the client's key signs (`private_key_jwt`, RFC 7523 section 2.2).
    case privateKeyJWT(ClientKey)
    /// A secret for Apple, signed with the key of the developer team `teamID`. Each request has a new secret, so an
    /// expired secret is never sent. The key has to be on P-256 and to have an identifier.
    case appleSecret(ClientKey, teamID: String)
}

extension ClientAuthentication {
    /// The name in a provider's metadata (RFC 7591 section 2).
    var method: String {
        switch self {
        case .none: "none"
        case .clientSecretBasic: "client_secret_basic"
        case .clientSecretPost, .appleSecret: "client_secret_post"
        case .privateKeyJWT: "private_key_jwt"
        }
    }

    /// Throws `invalid` for a secret that is not text, or an Apple key that has no identifier or team. Throws
    /// `invalidKey` for an Apple key that is not on P-256.
    func check() throws(OAuthError) {
        switch self {
        case .none, .privateKeyJWT: break
        case .clientSecretBasic(let secret), .clientSecretPost(let secret):
            guard secret.unprotectedText() != nil else { throw .invalid("the client's secret") }
        case .appleSecret(let key, let teamID):
            guard key.isP256 else { throw .invalidKey }
            guard key.identifier != nil else { throw .invalid("the name of the client's key") }
            guard !teamID.isEmpty else { throw .invalid("the client's team") }
        }
    }
}
#endif
