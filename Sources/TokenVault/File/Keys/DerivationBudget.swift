package import TokenVaultPlatform

/// The memory that keys of passphrases may be derived in at once, for a process that derives what others ask for: the file
/// of a vault says how much each of its slots takes, up to 2 GiB.
package final class DerivationBudget: Sendable {
    /// Why there is no memory.
    package enum Refusal: Error {
        /// More is asked for than there can be, in bytes, when nothing else is derived.
        case tooMuch(allowed: UInt64)
        /// Others have it, and kept it for longer than was waited.
        case inUse
    }

    /// Memory that was taken, until this goes.
    package final class Share: Sendable {
        private let budget: DerivationBudget
        private let length: UInt64

        fileprivate init(_ budget: DerivationBudget, _ length: UInt64) {
            self.budget = budget
            self.length = length
        }

        deinit { budget.release(length) }
    }

    private struct State {
        var taken: UInt64 = 0
        var mostTaken: UInt64 = 0
        var waiters = 0
    }

    private let state = Monitor(State())
    private let length: UInt64
    private let patience: Duration
    private let available: @Sendable () -> UInt64?

    /// `length` bytes, and no more than seven eighths of what is `available` when memory is taken: the rest is for other
    /// programs. Waits for memory that others have as long as `patience`.
    package init(
        _ length: UInt64, patience: Duration,
        available: @escaping @Sendable () -> UInt64? = { MemoryAllowance.available() }
    ) {
        self.length = length
        self.patience = patience
        self.available = available
    }

    /// How many bytes are taken.
    package var taken: UInt64 { state.withLock { $0.taken } }

    /// The most bytes that were ever taken at once.
    package var mostTaken: UInt64 { state.withLock { $0.mostTaken } }

    /// How many wait for memory.
    package var waiters: Int { state.withLock { $0.waiters } }

    /// Takes so many bytes, and waits for others to give theirs back, until `deadline` at most.
    package func take(_ wanted: UInt64, until deadline: Deadline?) throws(Refusal) -> Share {
        let limit = min(patience, deadline?.remaining ?? patience)
        state.withLock { $0.waiters += 1 }
        let refusal: Refusal?? = state.wait(atMost: limit) { state -> Refusal?? in
            let available = available()
            // What there can be when others have given back theirs.
            let most = min(length, available.map { ($0 + state.taken) / 8 * 7 } ?? length)
            if wanted > most { return .some(.tooMuch(allowed: most)) }
            // What others have taken may not be used yet, and count as available: it is subtracted, though it may count twice.
            let allowed = min(length, available.map { $0 / 8 * 7 } ?? length)
            guard allowed >= state.taken, allowed - state.taken >= wanted else { return nil }
            state.taken += wanted
            state.mostTaken = max(state.mostTaken, state.taken)
            return .some(nil)
        }
        state.withLock { $0.waiters -= 1 }
        guard let refusal else { throw .inUse }
        if let refusal { throw refusal }
        return Share(self, wanted)
    }

    private func release(_ length: UInt64) { state.announce { $0.taken -= length } }
}
