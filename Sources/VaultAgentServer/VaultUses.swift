internal import Synchronization
internal import TokenVault

/// How a vault that is held is used: it is not closed while somebody is at it.
final class VaultUses: Sendable {
    private struct State {
        var underWay = 0
        var soFar: UInt64 = 0
        /// How often it had been used when it was last found to have something to read while locked, or could not be looked at.
        var whenFoundReadable: UInt64?
    }

    private let state = Mutex(State())

    func begin() {
        state.withLock { state in
            state.underWay += 1
            state.soFar += 1
        }
    }

    func end() { state.withLock { $0.underWay -= 1 } }

    /// How often it was used; `nil` while somebody is at it.
    var whenIdle: UInt64? { state.withLock { $0.underWay == 0 ? $0.soFar : nil } }

    /// Whether it was used since it was last found to have something to read while locked.
    var isWorthALook: Bool { state.withLock { $0.underWay == 0 && $0.whenFoundReadable != $0.soFar } }

    /// Notes that there was something to read while it was locked, after it was used so often.
    func note(readableAfter count: UInt64) { state.withLock { $0.whenFoundReadable = count } }
}

/// One use of a vault, until it goes.
final class VaultUse: Sendable {
    let vault: BlockingFileVault
    private let uses: VaultUses

    init(_ vault: BlockingFileVault, _ uses: VaultUses) {
        self.vault = vault
        self.uses = uses
        uses.begin()
    }

    deinit { uses.end() }
}
