internal import TokenVault
internal import TokenVaultPlatform

/// The uses of a vault that is held: it is not closed while one is under way.
final class VaultUses: Sendable {
    enum Kind {
        case reading
        /// It may change what can be read while the vault is locked.
        case changing
        /// It goes on until its client goes.
        case lasting
    }

    private struct State {
        var underWay = 0
        var lasting = 0
        /// How many uses there were that may have changed what can be read while it is locked.
        var changes: UInt64 = 0
        /// When it is looked at again for whether it can be closed, unless it is changed before; `nil` for at once.
        var nextLook: (after: UInt64, at: ContinuousClock.Instant)?
        /// How long the last look that failed has put off the next one.
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

    /// The number of changes; `nil` while a use is under way.
    var changesWhenIdle: UInt64? { state.withLock { $0.underWay == 0 ? $0.changes : nil } }

    /// The number of changes, once no use is under way. `nil` at once while a subscription is, and at the deadline.
    func changesWhenIdle(by deadline: Deadline) -> UInt64? {
        let found = state.wait(atMost: deadline.remaining) { state -> UInt64?? in
            if state.lasting > 0 { return .some(nil) }
            return state.underWay == 0 ? .some(state.changes) : nil
        }
        return found ?? nil
    }

    /// Whether it may be found now that it can be closed.
    var isWorthALook: Bool {
        state.withLock { state in
            guard state.underWay == 0 else { return false }
            return state.nextLook.map { $0.after != state.changes || $0.at <= .now } ?? true
        }
    }

    /// Notes that there was something to read while it was locked, after it was changed so often. Other processes may change
    /// that: the next look is in `duration`.
    func noteReadable(after changes: UInt64, lookingAgainIn duration: Duration) {
        state.withLock { state in
            state.nextLook = (changes, .now.advanced(by: duration))
            state.pause = .zero
        }
    }

    /// Notes that it could not be told what there is to read. The next look is in a second, then in two, and so on to
    /// `longest`.
    func noteFailure(after changes: UInt64, lookingAgainWithin longest: Duration) {
        state.withLock { state in
            state.pause = min(max(state.pause * 2, .seconds(1)), longest)
            state.nextLook = (changes, .now.advanced(by: state.pause))
        }
    }
}

/// One use of a vault, until it goes.
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
