public import Observation

/// Creates the services of an app. A factory supplies the storage, the clients and the endpoints.
public protocol AuthServiceFactory: Sendable {
    /// Returns the service for `type`. Throws when there is none.
    func service(for type: AuthType) throws -> any AuthenticationService
}

/// The sign-in state that the screens of an app observe. The container uses one of several services, which
/// can be exchanged while the app runs. On a server, use the ``AuthState`` sequence of the service instead.
@MainActor @Observable
public final class AuthContainer {
    /// The present state; `unknown` until the storage was read. Choose no screen by `unknown`.
    public private(set) var state: AuthState = .unknown
    /// The present way of signing in.
    public private(set) var authType: AuthType
    /// The present service.
    public private(set) var service: any AuthenticationService

    @ObservationIgnored private let factory: any AuthServiceFactory
    @ObservationIgnored private var following: Task<Void, Never>?

    /// Creates a container that begins with `authType`. Throws the errors of the factory.
    public init(factory: any AuthServiceFactory, authType: AuthType) throws {
        self.factory = factory
        self.authType = authType
        service = try factory.service(for: authType)
        follow()
    }

    isolated deinit { following?.cancel() }

    /// Whether there is a session.
    public var isSignedIn: Bool { state.isSignedIn }
    /// The signed-in user.
    public var currentUser: AuthUser? { state.user }

    /// Switches to another service. The session of the previous service stays stored, unless `signingOut`;
    /// switching back finds it again. Throws the errors of the factory, and `storage` when signing out
    /// failed. Nothing is changed after an error.
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

    /// Signs in. Throws the errors of the sign-in code, and ``TokenError``.
    public func login(_ request: SignInRequest) async throws { try await service.login(request) }

    /// Signs out. Throws the same errors as ``AuthenticationService/logout()``.
    public func logout() async throws(TokenError) { try await service.logout() }

    /// Reads the storage again. Call this after unlocking it.
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
                // This state comes from the previous service, too late.
                if Task.isCancelled { return }
                self?.state = state
            }
        }
    }
}
