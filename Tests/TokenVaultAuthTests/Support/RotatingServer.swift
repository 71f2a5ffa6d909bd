import Synchronization
import TokenVaultAuth

/// The token endpoint of a server that rotates refresh tokens. It ends the session when an old token comes
/// back, as RFC 9700 section 4.14.2 asks for. It is in the process, so that a test can stop it at any point.
final class RotatingServer: Sendable {
    enum Answer: Sendable {
        case tokens
        /// The token is taken, and the answer lost on the way.
        case lost
        case failure(RefreshFailure)
    }

    private struct State {
        var number = 0
        var current = "refresh-0"
        var previous: String?
        var requests: [String] = []
        var retries = 0
        var revoked: [String] = []
        var isOver = false
        var answers: [Answer] = []
    }

    private let state: Mutex<State>
    /// How long access tokens are good for, in seconds.
    let lifetime: Double
    /// Whether the token before the current one is still taken: for clients that lost an answer.
    let isForgiving: Bool
    /// Runs while a request is under way.
    private let during: @Sendable (Int) async -> Void

    init(
        lifetime: Double = 3_600, isForgiving: Bool = false, answers: [Answer] = [],
        during: @escaping @Sendable (Int) async -> Void = { _ in }
    ) {
        self.lifetime = lifetime
        self.isForgiving = isForgiving
        self.during = during
        state = Mutex(State(answers: answers))
    }

    /// One that opens `begun` with the first request, and answers that once `gate` is open.
    convenience init(begun: Gate, answeringAt gate: Gate) {
        self.init { number in
            guard number == 1 else { return }
            begun.open()
            await gate.pass()
        }
    }

    var requests: Int { state.withLock { $0.requests.count } }
    var retriesOfUnknownOutcome: Int { state.withLock { $0.retries } }
    var revoked: [String] { state.withLock { $0.revoked } }
    var isOver: Bool { state.withLock { $0.isOver } }
    /// The refresh token that is good now.
    var current: String { state.withLock { $0.current } }

    /// What the endpoint does with a refresh request.
    var provider: RefreshRequestProvider {
        { [self] request in
            let number = state.withLock { state in
                state.requests.append(request.refreshToken)
                if request.isRetryOfUnknownOutcome { state.retries += 1 }
                return state.requests.count
            }
            await during(number)
            return try answer(request)
        }
    }

    var revoker: RevokeRequestProvider {
        { [self] tokens in
            state.withLock { state in
                state.revoked.append(tokens.refreshToken ?? tokens.accessToken)
            }
        }
    }

    private func answer(_ request: RefreshRequest) throws -> TokenRefreshResponse {
        try state.withLock { state in
            let answer = state.answers.isEmpty ? .tokens : state.answers.removeFirst()
            if case .failure(let failure) = answer { throw failure }
            let isGood =
                request.refreshToken == state.current || isForgiving && request.refreshToken == state.previous
            guard isGood, !state.isOver else {
                state.isOver = true
                throw RefreshFailure(.invalidGrant)
            }
            state.number += 1
            state.previous = request.refreshToken
            state.current = "refresh-\(state.number)"
            if case .lost = answer { throw RefreshFailure(.interrupted) }
            return TokenRefreshResponse(
                accessToken: "access-\(state.number)", expiresIn: lifetime, refreshToken: state.current)
        }
    }
}
