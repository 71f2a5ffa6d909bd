import TokenVault

@testable import TokenVaultAuth

/// A provider that answers as a test says, and notes what it was asked.
struct ScriptedProvider: SessionProvider {
    struct Failure: ProviderFailure, Equatable {
        let refreshFailure: RefreshFailure

        init(_ kind: RefreshFailure.Kind) { refreshFailure = RefreshFailure(kind) }
    }

    var authorizing: @Sendable () async throws(Failure) -> TokenInfo = { () throws(Failure) in
        TokenInfo(accessToken: "access-new", refreshToken: "refresh-new")
    }
    var refreshing: @Sendable (RefreshRequest) async throws(Failure) -> TokenRefreshResponse = {
        (_) throws(Failure) in
        TokenRefreshResponse(accessToken: "access-new", expiresIn: 3_600, refreshToken: "refresh-new")
    }
    var revoking: @Sendable () async throws(Failure) -> Void = { () throws(Failure) in }
    var metadata = #"{"revocation_endpoint":"https://id.example.com/revoke"}"#
    var user: AuthUser? = AuthUser(identifier: "fake-user")
    let authorized = Notes<String>()
    let refreshed = Notes<String>()
    let revoked = Notes<String>()

    static let settings = SignInSettings(issuer: "https://id.example.com", clientID: "fake")

    static func profile(
        _ settings: SignInSettings = settings,
        metadata: String = #"{"revocation_endpoint":"https://id.example.com/revoke"}"#
    ) -> Profile {
        Profile(settings, metadata: metadata, authentication: .none)
    }

    func authorize(_ settings: SignInSettings, within limit: Duration) async throws(Failure) -> SignedIn {
        authorized.add(settings.issuer)
        return SignedIn(
            tokens: try await authorizing(), profile: Self.profile(settings, metadata: metadata),
            user: user)
    }

    func refresh(
        _ request: RefreshRequest, of profile: Profile, within limit: Duration
    ) async throws(Failure) -> TokenRefreshResponse {
        refreshed.add(request.refreshToken)
        return try await refreshing(request)
    }

    func revoke(_ tokens: TokenInfo, of profile: Profile, within limit: Duration) async throws(Failure) {
        revoked.add(tokens.refreshToken ?? tokens.accessToken)
        try await revoking()
    }
}

/// A gate that tasks wait at, whether or not they are cancelled.
actor TaskGate {
    private var isOpen = false
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var observers: [CheckedContinuation<Void, Never>] = []
    private var arrivals = 0

    /// Waits until the gate is open.
    func pass() async {
        arrivals += 1
        for observer in observers { observer.resume() }
        observers = []
        guard !isOpen else { return }
        await withCheckedContinuation { waiting.append($0) }
    }

    /// Waits until a task is at the gate, or was.
    func arrival() async {
        guard arrivals == 0 else { return }
        await withCheckedContinuation { observers.append($0) }
    }

    func open() {
        isOpen = true
        for continuation in waiting { continuation.resume() }
        waiting = []
    }
}
