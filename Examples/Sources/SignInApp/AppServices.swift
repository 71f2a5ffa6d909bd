import TokenVault
import TokenVaultAuth

/// The services of this app: one for each way of signing in, over one storage.
struct AppServices: AuthServiceFactory {
    let storage: any TokenStorage
    let server: DemoServer

    func service(for type: AuthType) -> any AuthenticationService {
        switch type {
        case .jwt:
            JWTAuthService(
                storage: storage, account: "jwt", revoke: { await server.revoke($0) },
                refresh: { try await server.refresh($0) }, signIn: { try await server.signIn($0) })
        case .oauth2:
            OAuth2AuthService(
                storage: storage, account: "oauth2", revoke: { await server.revoke($0) },
                refresh: { try await server.refresh($0) },
                signIn: { _ in
                    // A real provider gets the digest in the request and repeats it in its assertion.
                    let nonce = SignInNonce.randomNonceString()
                    return try await server.signIn(assertion: SignInNonce.sha256(nonce), nonce: nonce)
                })
        case .session:
            SessionAuthService(
                storage: storage, account: "session", end: { await server.revoke($0) },
                signIn: { try await server.signIn($0) })
        }
    }
}
