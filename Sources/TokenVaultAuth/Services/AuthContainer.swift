public import Observation

/// Makes the services of an app: here the storage, the clients and the endpoints are put in.
public protocol AuthServiceFactory: Sendable {
    /// The service for `type`. Throws when there is none.
    func service(for type: AuthType) throws -> any AuthenticationService
}

/// What the screens of an app observe: who is signed in, and by which of several services, which can be exchanged while the
/// app runs. On a server use the ``AuthState`` sequence of the service underneath.
@MainActor @Observable
public final class AuthContainer {
    /// What is known now. `unknown` until the storage was looked at: no screen should be chosen by it.
    public private(set) var state: AuthState = .unknown
    /// The way of signing in that is used now.
    public private(set) var authType: AuthType
    /// The service that is used now.
    public private(set) var service: any AuthenticationService

    @ObservationIgnored private let factory: any AuthServiceFactory
    @ObservationIgnored private var following: Task<Void, Never>?

    /// A container that begins with `authType`. Throws what the factory throws.
    public init(factory: any AuthServiceFactory, authType: AuthType) throws {
        self.factory = factory
        self.authType = authType
        service = try factory.service(for: authType)
        follow()
    }

    isolated deinit { following?.cancel() }

    /// Whether there is a session.
    public var isSignedIn: Bool { state.isSignedIn }
    /// Who is signed in.
    public var currentUser: AuthUser? { state.user }

    /// Uses another service from now on. The session of the one before stays stored, unless `signingOut`, and is there again
    /// when that one is. Throws what the factory throws, and `storage` when signing out did not succeed: nothing is changed
    /// then.
    public func switchAuthType(_ type: AuthType, signingOut: Bool = false) async throws {
        guard type != authType else { return }
        let next = try factory.service(for: type)
        if signingOut {
            do throws(TokenError) {
                try await service.logout()
            } catch {
                guard case .notRevoked = error else { throw error }
            }
        }
        service = next
        authType = type
        state = .unknown
        follow()
    }

    /// Signs in. Throws what the sign-in code throws, and ``TokenError``.
    public func login(_ request: SignInRequest) async throws { try await service.login(request) }

    /// Signs out. Throws as ``AuthenticationService/logout()``.
    public func logout() async throws(TokenError) { try await service.logout() }

    /// Looks at the storage again: after it was unlocked.
    public func refreshState() async {
        let service = service
        let state = await service.manager.authState()
        if service.manager === self.service.manager { self.state = state }
    }

    private func follow() {
        following?.cancel()
        let states = service.authStates
        following = Task { [weak self] in
            for await state in states {
                // What the service before had to tell came too late.
                if Task.isCancelled { return }
                self?.state = state
            }
        }
    }
}
