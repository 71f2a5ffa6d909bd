internal import Synchronization
internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

/// How much of large commits waits for their ends, of all clients together.
final class CommitBudget: Sendable {
    private let left: Mutex<Int>

    init(_ length: Int) { left = Mutex(length) }

    /// Takes `length` bytes, if there are so many.
    func take(_ length: Int) -> Bool {
        left.withLock { left in
            guard left >= length else { return false }
            left -= length
            return true
        }
    }

    func giveBack(_ length: Int) { left.withLock { $0 += length } }
}

/// The changes of one client's commit that does not fit into one frame, until the last ones are there.
final class CommitParts {
    private let budget: CommitBudget
    private var request: AgentRequest?
    private var changes: [TokenChange] = []
    private var length = 0
    /// When the commit has to be there; `nil` when none has begun.
    private(set) var deadline: Deadline?
    /// Whether there was no room for the commit: its parts are let go of, and it is refused at its end.
    private(set) var isRefused = false

    init(_ budget: CommitBudget) { self.budget = budget }

    deinit { removeAll() }

    /// What changes take in memory at least, beside their bytes.
    private static func size(of changes: [TokenChange]) -> Int {
        changes.count * (MemoryLayout<TokenChange>.stride + 64)
    }

    /// Keeps a part, or adds those that are kept to the commit that ends them. Whether it was a part. Throws
    /// `outOfBounds` for what does not belong together.
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
            guard !isRefused else { return true }
            let size = length + Self.size(of: more)
            guard budget.take(size) else {
                changes = []
                budget.giveBack(self.length)
                self.length = 0
                isRefused = true
                return true
            }
            self.length += size
            changes += more
            return true
        case .commit(let service, let last):
            guard request != nil else { return false }
            try checkService(service)
            next.operation = .commit(service: service, changes: changes + last)
            return false
        default:
            guard request == nil else { throw .outOfBounds }
            return false
        }
    }

    private func checkService(_ service: String) throws(WireError) {
        guard case .commit(let known, _)? = request?.operation else { return }
        guard TokenKey(known) == TokenKey(service) else { throw .outOfBounds }
    }

    /// Lets go of everything.
    func removeAll() {
        budget.giveBack(length)
        length = 0
        request = nil
        changes = []
        deadline = nil
        isRefused = false
    }
}

extension TokenStorageError {
    /// There is no room for a commit of that size now.
    static var tooManyParts: TokenStorageError {
        TokenStorageError(
            .resourcesExhausted, operation: "commit", backend: AgentPlace.backend,
            underlying: "the agent has no room for so much at once", advice: "commit less, or try again")
    }
}
