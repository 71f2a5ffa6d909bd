internal import TokenVault
internal import TokenVaultPlatform

/// The uses of a held vault, which is not closed during a use.
final class VaultUses: Sendable {
    enum Kind {
        case reading
        /// The use may change which items are readable while the vault is locked.
        case changing
        /// The use lasts until its client goes away.
        case lasting
    }

    private struct State {
        var underWay = 0
        var lasting = 0
        /// The number of uses that may have changed which items are readable while the vault is locked.
        var changes: UInt64 = 0
        /// The time of the next check for closing, unless the vault changes before; `nil` for at once.
        var nextLook: (after: UInt64, at: ContinuousClock.Instant)?
        /// The delay of the next check after the last failed one.
        var pause = Duration.zero
    }

    private let state = Monitor(State())

    func begin(_ kind: Kind) {
        state.withLock { state in
            state.underWay += 1
            if kind == .lasting { state.lasting += 1 }
            if kind == .changing { state.changes += 1 }
        }
    }

    func end(_ kind: Kind) {
        state.announce { state in
            state.underWay -= 1
            if kind == .lasting { state.lasting -= 1 }
        }
    }

    /// The number of changes; `nil` during a use.
    var changesWhenIdle: UInt64? { state.withLock { $0.underWay == 0 ? $0.changes : nil } }

    /// Waits until no use is under way, and returns the number of changes. Returns `nil` at the deadline, and
    /// at once during a subscription.
    func changesWhenIdle(by deadline: Deadline) -> UInt64? {
        let found = state.wait(atMost: deadline.remaining) { state -> UInt64?? in
            if state.lasting > 0 { return .some(nil) }
            return state.underWay == 0 ? .some(state.changes) : nil
        }
        return found ?? nil
    }

    /// Whether a check for closing is worthwhile now.
    var isWorthALook: Bool {
        state.withLock { state in
            guard state.underWay == 0 else { return false }
            return state.nextLook.map { $0.after != state.changes || $0.at <= .now } ?? true
        }
    }

    /// Notes that the locked vault had something to read after `changes` changes. Other processes may change
    /// that, so the next check is after `duration`.
    func noteReadable(after changes: UInt64, lookingAgainIn duration: Duration) {
        state.withLock { state in
            state.nextLook = (changes, .now.advanced(by: duration))
            state.pause = .zero
        }
    }

    /// Notes that the check failed. The next check is after one second, then after two, and so on up to
    /// `longest`.
    func noteFailure(after changes: UInt64, lookingAgainWithin longest: Duration) {
        state.withLock { state in
            state.pause = min(max(state.pause * 2, .seconds(1)), longest)
            state.nextLook = (changes, .now.advanced(by: state.pause))
        }
    }
}

/// One use of a vault, until it is released.
final class VaultUse: Sendable {
    let vault: BlockingFileVault
    private let uses: VaultUses
    private let kind: VaultUses.Kind

    init(_ vault: BlockingFileVault, _ uses: VaultUses, _ kind: VaultUses.Kind) {
        self.vault = vault
        self.uses = uses
        self.kind = kind
        uses.begin(kind)
    }

    deinit { uses.end(kind) }
}
