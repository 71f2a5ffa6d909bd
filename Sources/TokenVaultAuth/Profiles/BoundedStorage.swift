internal import Synchronization
internal import TokenVault

/// A storage each of whose calls ends within the time of a transaction. A call that takes longer goes on, and
/// its result is not known: `outcomeUnknown` for a commit, `timedOut` for others.
struct BoundedStorage: TokenStorage {
    private let base: any TokenStorage
    private let time: TransactionTime
    private let late = LateCommits()

    init(_ base: any TokenStorage, _ time: TransactionTime) {
        self.base = base
        self.time = time
    }

    var service: String { base.service }
    var supportedPolicies: Set<AccessPolicy> { base.supportedPolicies }
    var defaultPolicy: AccessPolicy { base.defaultPolicy }
    func changes() -> TokenChanges { base.changes() }

    func lockState() async throws(TokenStorageError) -> LockState {
        try await bounded { () async throws(TokenStorageError) in try await base.lockState() }
    }

    func secret(for key: TokenKey) async throws(TokenStorageError) -> Secret? {
        try await bounded { () async throws(TokenStorageError) in try await base.secret(for: key) }
    }

    func item(for key: TokenKey) async throws(TokenStorageError) -> TokenItem? {
        try await bounded { () async throws(TokenStorageError) in try await base.item(for: key) }
    }

    func metadata(for key: TokenKey) async throws(TokenStorageError) -> TokenMetadata? {
        try await bounded { () async throws(TokenStorageError) in try await base.metadata(for: key) }
    }

    func list(_ query: TokenQuery) async throws(TokenStorageError) -> TokenListing {
        try await bounded { () async throws(TokenStorageError) in try await base.list(query) }
    }

    func commit(_ changes: [TokenChange]) async throws(TokenStorageError) -> TokenCommit {
        try await bounded(isCommit: true) { () async throws(TokenStorageError) in
            try await base.commit(changes)
        }
    }

    func deleteAll() async throws(TokenStorageError) -> Int {
        try await bounded(isCommit: true) { () async throws(TokenStorageError) in
            try await base.deleteAll()
        }
    }

    /// Waits until no commit is under way that took too long. Returns false when one still is after the time
    /// of the transaction.
    func lateCommitsHaveEnded() async -> Bool {
        await time.value(of: Task.detached { [late] in await late.end() }) != nil
    }

    /// Whether a commit may have been stored without a confirmation.
    var mayHaveCommitted: Bool { late.isAny }

    private func bounded<Value: Sendable>(
        isCommit: Bool = false, _ body: @escaping @Sendable () async throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value {
        let timedOut = TokenStorageError(.timedOut, operation: "refresh", backend: "auth")
        guard time.storageLimit.map({ $0 > .zero }) ?? true else { throw timedOut }
        // The call is not a part of this task, whose cancellation would end a commit that is to be kept.
        let call = Task.detached { () async -> Result<Value, TokenStorageError> in
            do throws(TokenStorageError) { return .success(try await body()) } catch {
                return .failure(error)
            }
        }
        if let outcome = await time.value(of: call) {
            if case .failure(let error) = outcome, error.code == .outcomeUnknown { late.add(Task {}) }
            return try outcome.get()
        }
        guard isCommit else { throw timedOut }
        late.add(Task.detached { _ = await call.value })
        throw TokenStorageError(.outcomeUnknown, operation: "refresh", backend: "auth")
    }
}

/// The commits that took too long, or whose outcome is not known.
private final class LateCommits: Sendable {
    private let running = Mutex<[Task<Void, Never>]>([])

    func add(_ commit: Task<Void, Never>) { running.withLock { $0.append(commit) } }

    var isAny: Bool { running.withLock { !$0.isEmpty } }

    func end() async {
        for commit in running.withLock({ $0 }) { await commit.value }
    }
}
