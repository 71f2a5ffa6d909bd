internal import Synchronization
internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

/// The memory budget for commits, of all clients together and of each process.
final class CommitBudget: Sendable {
    private struct State {
        var left: Int
        var taken: [Int32: Int] = [:]
    }

    private let state: Mutex<State>
    private let share: Int

    /// Creates a budget of `length` bytes for all clients, and `share` of them for one process.
    init(_ length: Int, share: Int) {
        state = Mutex(State(left: length))
        self.share = share
    }

    /// Reserves `length` bytes for `process`; returns false if there are not enough.
    func take(_ length: Int, for process: Int32) -> Bool {
        state.withLock { state in
            let taken = state.taken[process, default: 0]
            guard state.left >= length, share - taken >= length else { return false }
            state.left -= length
            state.taken[process] = taken + length
            return true
        }
    }

    func release(_ length: Int, of process: Int32) {
        guard length > 0 else { return }
        state.withLock { state in
            state.left += length
            let taken = state.taken[process, default: 0] - length
            state.taken[process] = taken > 0 ? taken : nil
        }
    }
}

/// The changes of one client's commit, while its parts arrive and while it is carried out.
final class CommitParts {
    private let budget: CommitBudget
    private let process: Int32
    private var request: AgentRequest?
    private var changes: [TokenChange] = []
    private var length = 0
    /// The time by which the commit has to be complete; `nil` when none has begun.
    private(set) var deadline: Deadline?
    /// Whether there was no room for the commit: its parts are dropped, and it is rejected at its end.
    private(set) var isRefused = false

    init(_ budget: CommitBudget, of process: Int32) {
        self.budget = budget
        self.process = process
    }

    deinit { removeAll() }

    /// Returns the least memory that changes need in addition to their bytes. Each change has a secret, texts
    /// of more than 15 bytes are stored separately, and attributes are in a table.
    static func size(of changes: [TokenChange]) -> Int {
        changes.reduce(0) { sum, change in
            let attributes = change.details.attributes.map { 160 + 80 * $0.count } ?? 0
            return sum + MemoryLayout<TokenChange>.stride + 128 + 2 * attributes
        }
    }

    /// Keeps a part, or adds the kept parts to the commit that ends them. Returns whether it was a part.
    /// Throws `outOfBounds` for requests that do not belong together.
    func take(
        _ next: inout AgentRequest, length: Int, within time: Duration
    ) throws(WireError) -> Bool {
        if let request {
            guard next.id == request.id, next.vault == request.vault else { throw .outOfBounds }
        }
        switch next.operation {
        case .commitPart(let service, let more):
            try checkService(service)
            if request == nil {
                request = next
                request?.operation = .commit(service: service, changes: [])
                deadline = Deadline(after: time)
            }
            if charge(length, more) { changes += more }
            return true
        case .commit(let service, let last):
            if request != nil { try checkService(service) }
            guard charge(length, last) else {
                next.operation = .commit(service: service, changes: [])
                return false
            }
            if request != nil { next.operation = .commit(service: service, changes: changes + last) }
            return false
        default:
            guard request == nil else { throw .outOfBounds }
            return false
        }
    }

    /// Reserves room for `more` changes, which arrived in `length` bytes. Drops all changes and returns false
    /// when there is none.
    private func charge(_ length: Int, _ more: [TokenChange]) -> Bool {
        guard !isRefused else { return false }
        let size = length + Self.size(of: more)
        guard budget.take(size, for: process) else {
            changes = []
            release()
            isRefused = true
            return false
        }
        self.length += size
        return true
    }

    private func release() {
        budget.release(length, of: process)
        length = 0
    }

    private func checkService(_ service: String) throws(WireError) {
        guard case .commit(let known, _)? = request?.operation else { return }
        guard TokenKey(known) == TokenKey(service) else { throw .outOfBounds }
    }

    /// Drops all changes and releases their room.
    func removeAll() {
        release()
        request = nil
        changes = []
        deadline = nil
        isRefused = false
    }
}

extension TokenStorageError {
    /// The error when there is no room for a commit of that size now.
    static var tooManyParts: TokenStorageError {
        TokenStorageError(
            .resourcesExhausted, operation: "commit", backend: AgentEndpoint.backend,
            reason: .shortage(.commitRoom))
    }
}
