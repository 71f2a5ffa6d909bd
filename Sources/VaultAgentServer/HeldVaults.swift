internal import Synchronization
package import SystemPackage
package import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

/// The vaults that the agent holds: those that a client unlocked since the agent started. They stay held when they lock. A locked
/// vault in which nothing can be read has no file open: see ``ClosedVault``.
package final class HeldVaults: Sendable {
    /// A vault that is held, with its file open.
    struct Held: Sendable {
        let vault: BlockingFileVault
        var idleTime: Duration?
        /// Where this device's keys are for it.
        let stateDirectory: FilePath?
        var uses = VaultUses()
    }

    struct State {
        var vaults: [FilePath: Held] = [:]
        /// What is left of those that were closed when they locked: none of ``vaults``, by their paths.
        var closed: [FilePath: ClosedVault] = [:]
        /// Vaults that are held no more, until what was read of them is taken back: whoever locks meanwhile does that too, and
        /// is not answered before.
        var leaving: [ObjectIdentifier: BlockingFileVault] = [:]
        /// What was locked since each of the unlocks that are under way began.
        var unlocking: [UInt64: Locks] = [:]
        var unlocksSoFar: UInt64 = 0
        var hasEnded = false
        var sessionObstacle: String? = "the agent does not watch the session"
    }

    /// Who is told of locks. A function by itself, as what a `Mutex` guards, is wrapped once more each time it is taken out.
    struct LockListener: Sendable {
        let tell: @Sendable ([BlockingFileVault]) -> Void
    }

    /// The vaults that were locked while an unlock at a path is under way. A lock also means a vault that is being unlocked.
    struct Locks {
        /// Where the vault is that is unlocked.
        let path: FilePath
        var isAll = false
        private var paths: Set<FilePath> = []
        private var identifiers: Set<String> = []

        init(whileUnlocking path: FilePath) { self.path = path }

        mutating func insert(_ reference: VaultReference) {
            paths.insert(reference.path)
            if let identifier = reference.identifier { identifiers.insert(identifier) }
            // However many there are: rather one too many is locked.
            if paths.count + identifiers.count > 256 { isAll = true }
        }

        func contains(_ vault: BlockingFileVault, at path: FilePath) -> Bool {
            isAll || paths.contains(path) || identifiers.contains(vault.identifier)
        }
    }

    let state = Mutex(State())
    let whenLocked = Mutex(LockListener { _ in })
    /// The vaults that are looked at, each by a thread, for whether they can be closed.
    let closing = Monitor<Set<ObjectIdentifier>>([])
    /// Deriving a key takes much memory: who unlocks has the one turn at that.
    let unlockTurns: TurnQueue
    /// A listing takes as much memory as it has items, until its client has read it.
    let listTurns = TurnQueue(6, share: 2)
    /// Requests that are taken in: see ``CommitBudget``, which knows what they take only after that.
    let decodingTurns = TurnQueue(2, share: 1)
    /// What every derivation of the agent takes its memory from, until it has ended: also when its client is gone, or its turn
    /// passed on.
    let derivations: DerivationBudget
    let limits: AgentLimits

    package init(limits: AgentLimits) {
        self.limits = limits
        derivations = DerivationBudget(
            limits.derivationLength, patience: limits.derivationTime, available: limits.availableMemory)
        unlockTurns = TurnQueue(1, share: 1, longest: limits.longestTurn)
    }

    /// The vault that `reference` is about, if it is held.
    func vault(_ reference: VaultReference) -> BlockingFileVault? { held(reference)?.vault }

    func held(_ reference: VaultReference) -> Held? {
        let held = state.withLock { $0.vaults[reference.path] }
        guard let held, let identifier = reference.identifier else { return held }
        return held.vault.identifier == identifier ? held : nil
    }

    /// Unlocks a vault, and holds it from then on: for who has a turn of ``unlockTurns``, and as long as that. Throws as
    /// ``TokenVault/BlockingFileVault/unlock(with:repairing:)``.
    func unlock(
        _ reference: VaultReference, _ order: UnlockOrder, in turn: TurnQueue.Turn
    ) throws(TokenStorageError) -> VaultUse {
        let number = state.withLock { state in
            state.unlocksSoFar += 1
            state.unlocking[state.unlocksSoFar] = Locks(whileUnlocking: reference.path)
            return state.unlocksSoFar
        }
        defer { withExtendedLifetime(turn) { state.withLock { $0.unlocking[number] = nil } } }
        let path = VaultReference(at: reference.path).path
        guard path == reference.path else {
            throw TokenStorageError(
                .invalidArgument, operation: "unlock", backend: AgentEndpoint.backend,
                reason: .limit(.linkedPath))
        }
        // One that was let go of while its key was derived says nothing of what is at the path now.
        for _ in 1..<Self.mostReleases {
            do throws(TokenStorageError) {
                return use(of: try unlockOnce(at: path, order, number), at: path)
            } catch {
                guard error.code == .closed, !state.withLock({ $0.hasEnded }) else { throw error }
            }
        }
        return use(of: try unlockOnce(at: path, order, number), at: path)
    }

    private static let mostReleases = 8

    /// The unlock of that number. Throws `closed` when the vault was let go of meanwhile, and nobody locked.
    private func unlockOnce(
        at path: FilePath, _ order: UnlockOrder, _ number: UInt64
    ) throws(TokenStorageError) -> BlockingFileVault {
        var configuration = FileVaultConfiguration(stateDirectory: order.stateDirectory)
        configuration.automaticLock = order.idleTime.map { .whenIdle(for: $0) }
        configuration.derivationBudget = derivations
        // What is at the path now: another vault may have taken the place of the one that is held.
        let fresh = try BlockingFileVault.open(at: path, configuration: configuration)
        let (known, hasRoom) = state.withLock { ($0.vaults[path], $0.hasRoom(for: path, limits.vaults)) }
        let orders = known?.vault.lockOrders ?? 0
        let held = known?.vault.identifier == fresh.identifier ? known : nil
        let isHeld = held.map { Self.isInPlace($0.vault) } ?? false
        var idleTime = order.idleTime
        if let held, isHeld, Self.isOpen(held.vault) {
            do throws(TokenStorageError) {
                if try opensLess(fresh, with: order.method) {
                    fresh.close()
                    return held.vault
                }
            } catch {
                fresh.close()
                throw error
            }
            if !order.isTimeAsked { idleTime = held.idleTime }
        }
        let vault: BlockingFileVault
        if let held, isHeld, held.stateDirectory == order.stateDirectory {
            fresh.close()
            vault = held.vault
            try vault.unlock(with: order.method, unlessToldToLockSince: orders)
        } else {
            guard hasRoom else {
                fresh.close()
                throw Self.tooManyVaults
            }
            vault = fresh
            do throws(TokenStorageError) {
                try vault.unlock(with: order.method)
            } catch {
                vault.close()
                throw error
            }
        }
        try vault.lockAutomatically(idleTime.map { .whenIdle(for: $0) })
        try hold(
            Held(vault: vault, idleTime: idleTime, stateDirectory: order.stateDirectory), at: path, number,
            after: known.map { ($0.vault, orders) })
        return vault
    }

    /// Holds a vault that the unlock of that number has opened, in the place of `known`, which had been told to lock so often
    /// before. Throws `locked` when it was locked again meanwhile, and `closed` when it was let go of.
    func hold(
        _ fresh: Held, at path: FilePath, _ number: UInt64,
        after known: (vault: BlockingFileVault, orders: Int)?
    ) throws(TokenStorageError) {
        let vault = fresh.vault
        var fresh = fresh
        let (isLocked, isGone, former) = state.withLock { state in
            let isLocked =
                state.unlocking[number]?.contains(vault, at: path) ?? true
                || vault === known?.vault && vault.lockOrders != known?.orders
            // Before anybody can ask for it.
            if isLocked { vault.lock() }
            let isLeaving = vault.isClosed || state.leaving[ObjectIdentifier(vault)] != nil
            guard !state.hasEnded, !isLeaving else { return (isLocked, true, nil as BlockingFileVault?) }
            state.closed[path] = nil
            if let held = state.vaults[path], held.vault === vault { fresh.uses = held.uses }
            let former = state.vaults.updateValue(fresh, forKey: path)?.vault
            state.forgetClosed(over: limits.vaults)
            // Who locks from here on means it too, and does not find it.
            guard let former, former !== vault else { return (isLocked, false, nil) }
            former.lock()
            state.leaving[ObjectIdentifier(former)] = former
            return (isLocked, false, former)
        }
        if let former { takeLeave(of: former) }
        if isGone { vault.close() }
        // Who locked while the key was derived meant this too.
        if isLocked {
            throw TokenStorageError(
                .locked, operation: "unlock", backend: AgentEndpoint.backend,
                reason: .changedMeanwhile(.lockedAgain))
        }
        if isGone { throw TokenStorageError(.closed, operation: "unlock", backend: AgentEndpoint.backend) }
    }

    /// Whether `method` leads to less than everything in `vault`, which is the one that is held, opened once more. With that,
    /// an unlock would take away what is open. Throws as an unlock.
    private func opensLess(
        _ vault: BlockingFileVault, with method: UnlockMethod
    ) throws(TokenStorageError) -> Bool {
        switch method {
        // These lead to everything, and are expensive to try twice.
        case .passphrase, .recoveryKey: return false
        case .keyFile, .secretService:
            try vault.unlock(with: method, repairing: false)
            return !Self.isOpen(vault)
        }
    }

    /// Whether the file that is open is still the one at the vault's path. One that was removed, perhaps with its directory,
    /// is not the one that was put there since.
    private static func isInPlace(_ vault: BlockingFileVault) -> Bool {
        do throws(TokenStorageError) {
            _ = try vault.lockState()
            try vault.refresh()
            return true
        } catch {
            return false
        }
    }

    /// Whether everything in the vault is open, and not only what may be read after the first unlock.
    private static func isOpen(_ vault: BlockingFileVault) -> Bool {
        guard (try? vault.lockState()) == .unlocked else { return false }
        return (try? vault.status())?.unlockedBy?.scope != .afterFirstUnlock
    }

    private static let tooManyVaults = TokenStorageError(
        .resourcesExhausted, operation: "unlock", backend: AgentEndpoint.backend,
        reason: .shortage(.heldVaults))

    /// Unlocks the vault at `path` without a client, and holds it; it locks when it is told to, not when it is idle. Throws
    /// as ``TokenVault/BlockingFileVault/unlock(with:repairing:)``.
    package func unlock(
        at path: FilePath, with method: UnlockMethod, stateDirectory: FilePath?
    ) throws(TokenStorageError) {
        let order = UnlockOrder(method: method, stateDirectory: stateDirectory, idleTime: nil)
        let turn: TurnQueue.Turn
        do throws(TurnQueue.Refusal) {
            turn = try unlockTurns.turn(for: ProcessFacts.identifier, atMost: limits.turnTime) { true }
        } catch {
            throw .othersUnlock
        }
        _ = try unlock(VaultReference(at: path), order, in: turn)
    }

    /// Makes those who wait for a turn look whether they still want it.
    func lookAtTurns() {
        unlockTurns.look()
        listTurns.look()
        decodingTurns.look()
    }

    /// What is known of the vaults, in the order of their paths. Nothing is read for it.
    var statuses: [AgentVaultStatus] {
        let (vaults, closed, obstacle) = state.withLock { ($0.vaults, $0.closed, $0.sessionObstacle) }
        let open = vaults.compactMap { path, held in
            (try? held.vault.lockState()).map { state in
                AgentVaultStatus(path: path, state: state, idleTime: held.idleTime, sessionObstacle: obstacle)
            }
        }
        return (open + closed.map { $1.status(at: $0, obstacle) }).sorted { $0.path.string < $1.path.string }
    }

    /// What a look at a vault tells; `nil` when it is not held. Throws as ``TokenVault/BlockingFileVault/status()``.
    func status(of reference: VaultReference) throws(TokenStorageError) -> AgentVaultStatus? {
        guard let held = held(reference) else { return nil }
        let found = try held.vault.status()
        var status = AgentVaultStatus(
            path: reference.path, state: found.state, idleTime: held.idleTime,
            sessionObstacle: state.withLock { $0.sessionObstacle })
        status.items = found.items
        status.reclaimable = found.reclaimable
        status.isAnchored = found.rollbackProtection == .anchored
        status.isEnrolled = found.device.map { $0 == .enrolled }
        status.slot = found.unlockedBy?.id
        return status
    }
}

extension HeldVaults {
    /// The same of a vault that was closed when it locked.
    func status(of vault: ClosedVault, at path: FilePath) -> AgentVaultStatus {
        vault.status(at: path, state.withLock { $0.sessionObstacle })
    }
}

extension HeldVaults.State {
    /// Whether one more may be held at `path`, of so many in all.
    func hasRoom(for path: FilePath, _ count: Int) -> Bool {
        vaults[path] != nil || vaults.count < count
    }

    /// Forgets, of the vaults that were closed when they locked, those longest ago: with those that are open, no more than
    /// `count` are known.
    mutating func forgetClosed(over count: Int) {
        while vaults.count + closed.count > count,
            let oldest = closed.min(by: { $0.value.since < $1.value.since })
        {
            closed[oldest.key] = nil
        }
    }

    /// Makes the unlocks of that vault that are under way end locked.
    mutating func noteLock(of reference: VaultReference) {
        for number in unlocking.keys { unlocking[number]?.insert(reference) }
    }
}
