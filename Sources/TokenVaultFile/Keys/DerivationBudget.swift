internal import TokenVaultCore
package import TokenVaultPlatform

/// The memory that keys of passphrases may be derived in at once, for a process that derives keys for its
/// clients. The file of a vault says how much each of its slots takes, up to 2 GiB.
package final class DerivationBudget: Sendable {
    /// The reason that there is no memory.
    package enum Refusal: Error {
        /// The request exceeds the bytes that can be had when nothing else is derived.
        case tooMuch(allowed: UInt64)
        /// Other derivations held the memory for longer than the caller waited.
        case inUse
    }

    /// Memory that was taken, until the share is released.
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

    /// Creates a budget of `length` bytes, and at most seven eighths of the bytes `available` when memory is
    /// taken: the rest is for other programs. Callers wait up to `patience` for memory that others hold.
    package init(
        _ length: UInt64, patience: Duration,
        available: @escaping @Sendable () -> UInt64? = { MemoryAllowance.available() }
    ) {
        self.length = length
        self.patience = patience
        self.available = available
    }

    /// The number of bytes that are taken.
    package var taken: UInt64 { state.withLock { $0.taken } }

    /// The most bytes that were ever taken at once.
    package var mostTaken: UInt64 { state.withLock { $0.mostTaken } }

    /// The number of callers that wait for memory.
    package var waiters: Int { state.withLock { $0.waiters } }

    /// Takes `wanted` bytes, and waits for others to return theirs, until `deadline` at most.
    package func take(_ wanted: UInt64, until deadline: Deadline?) throws(Refusal) -> Share {
        let limit = min(patience, deadline?.remaining ?? patience)
        state.withLock { $0.waiters += 1 }
        let refusal: Refusal?? = state.wait(atMost: limit) { state -> Refusal?? in
            let available = available()
            // The most that there can be when others have returned theirs.
            let most = min(length, available.map { ($0 + state.taken) / 8 * 7 } ?? length)
            if wanted > most { return .some(.tooMuch(allowed: most)) }
            // Memory taken by others may not be in use yet, and counts as available: it is subtracted, though
            // it may count twice.
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
