internal import Synchronization
package import SystemPackage
package import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

/// The vaults that the agent holds: those that a client unlocked since the agent started. Locked vaults stay
/// held. A locked vault in which nothing can be read has no file open: see ``ClosedVault``.
package final class HeldVaults: Sendable {
    /// A held vault with its file open.
    struct Held: Sendable {
        let vault: BlockingFileVault
        var idleTime: Duration?
        /// The directory of this device's keys for the vault.
        let stateDirectory: FilePath?
        var uses = VaultUses()
    }

    struct State {
        var vaults: [FilePath: Held] = [:]
        /// The records of vaults that were closed when they locked, by their paths. None of them is in
        /// ``vaults``.
        var closed: [FilePath: ClosedVault] = [:]
        /// Vaults that were released, and whose data may still be in transit. A concurrent lock also stops
        /// that data, and is answered only after that.
        var leaving: [ObjectIdentifier: BlockingFileVault] = [:]
        /// The vaults that were locked since each running unlock began.
        var unlocking: [UInt64: Locks] = [:]
        var unlocksSoFar: UInt64 = 0
        var hasEnded = false
        var sessionObstacle: String? = "the agent does not watch the session"
    }

    /// The function that is called after locks. The struct avoids another wrapper around the closure each
    /// time that it is read from a `Mutex`.
    struct LockListener: Sendable {
        let tell: @Sendable ([BlockingFileVault]) -> Void
    }

    /// The vaults that were locked during an unlock at a path. A lock also applies to a vault that is being
    /// unlocked.
    struct Locks {
        /// The path of the vault that is being unlocked.
        let path: FilePath
        var isAll = false
        private var paths: Set<FilePath> = []
        private var identifiers: Set<String> = []

        init(whileUnlocking path: FilePath) { self.path = path }

        mutating func insert(_ reference: VaultReference) {
            paths.insert(reference.path)
            if let identifier = reference.identifier { identifiers.insert(identifier) }
            // Bounded: locking too many vaults is better than too few.
            if paths.count + identifiers.count > 256 { isAll = true }
        }

        func contains(_ vault: BlockingFileVault, at path: FilePath) -> Bool {
            isAll || paths.contains(path) || identifiers.contains(vault.identifier)
        }
    }

    let state = Mutex(State())
    let whenLocked = Mutex(LockListener { _ in })
    /// The vaults that threads are checking for closing.
    let closing = Monitor<Set<ObjectIdentifier>>([])
    /// The single turn for unlocking: deriving a key needs much memory.
    let unlockTurns: TurnQueue
    /// The turns for listing: a listing keeps the memory of its items until its client has read it.
    let listTurns = TurnQueue(6, share: 2)
    /// The turns for decoding requests: the memory of a request is known to ``CommitBudget`` only after
    /// decoding.
    let decodingTurns = TurnQueue(2, share: 1)
    /// The memory budget of all key derivations. A derivation uses it until it ends, even if its client is
    /// gone or its turn has passed on.
    let derivations: DerivationBudget
    let limits: AgentLimits

    package init(limits: AgentLimits) {
        self.limits = limits
        derivations = DerivationBudget(
            limits.derivationLength, patience: limits.derivationTime, available: limits.availableMemory)
        unlockTurns = TurnQueue(1, share: 1, longest: limits.longestTurn)
    }

    /// Returns the vault in `reference`, if it is held.
    func vault(_ reference: VaultReference) -> BlockingFileVault? { held(reference)?.vault }

    func held(_ reference: VaultReference) -> Held? {
        let held = state.withLock { $0.vaults[reference.path] }
        guard let held, let identifier = reference.identifier else { return held }
        return held.vault.identifier == identifier ? held : nil
    }

    /// Unlocks a vault and holds it from then on. Needs a turn of ``unlockTurns``, which is kept until the
    /// end. Throws the same errors as ``TokenVault/BlockingFileVault/unlock(with:repairing:)``.
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
        // If a vault was released while its key was derived, the failure says nothing about the vault that is
        // at the path now.
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

    /// Runs the unlock with that number. Throws `closed` when the vault was released meanwhile without a
    /// lock.
    private func unlockOnce(
        at path: FilePath, _ order: UnlockOrder, _ number: UInt64
    ) throws(TokenStorageError) -> BlockingFileVault {
        var configuration = FileVaultConfiguration(stateDirectory: order.stateDirectory)
        configuration.automaticLock = order.idleTime.map { .whenIdle(for: $0) }
        configuration.derivationBudget = derivations
        // The vault at the path may have replaced the held one.
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

    /// Holds a vault that the unlock with that number has opened, in place of `known`. `known` comes with its
    /// number of lock orders before the unlock. Throws `locked` when the vault was locked again meanwhile,
    /// and `closed` when it was released.
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
            // Before any client can use it.
            if isLocked { vault.lock() }
            let isLeaving = vault.isClosed || state.leaving[ObjectIdentifier(vault)] != nil
            guard !state.hasEnded, !isLeaving else { return (isLocked, true, nil as BlockingFileVault?) }
            state.closed[path] = nil
            if let held = state.vaults[path], held.vault === vault { fresh.uses = held.uses }
            let former = state.vaults.updateValue(fresh, forKey: path)?.vault
            state.forgetClosed(over: limits.vaults)
            // A lock from here on also applies to the former vault, but would not find it.
            guard let former, former !== vault else { return (isLocked, false, nil) }
            former.lock()
            state.leaving[ObjectIdentifier(former)] = former
            return (isLocked, false, former)
        }
        if let former { takeLeave(of: former) }
        if isGone { vault.close() }
        // A lock while the key was derived also applied to this vault.
        if isLocked {
            throw TokenStorageError(
                .locked, operation: "unlock", backend: AgentEndpoint.backend,
                reason: .changedMeanwhile(.lockedAgain))
        }
        if isGone { throw TokenStorageError(.closed, operation: "unlock", backend: AgentEndpoint.backend) }
    }

    /// Whether `method` unlocks less than everything in `vault`, a second handle of the held vault. Such an
    /// unlock would take away access. Throws the errors of an unlock.
    private func opensLess(
        _ vault: BlockingFileVault, with method: UnlockMethod
    ) throws(TokenStorageError) -> Bool {
        switch method {
        // Passphrases and recovery keys unlock everything, and are expensive to try twice.
        case .passphrase, .recoveryKey: return false
        case .keyFile, .secretService:
            try vault.unlock(with: method, repairing: false)
            return !Self.isOpen(vault)
        }
    }

    /// Whether the open file is still the file at the vault's path. A removed file does not count as in
    /// place, even if another one was put there since.
    private static func isInPlace(_ vault: BlockingFileVault) -> Bool {
        do throws(TokenStorageError) {
            _ = try vault.lockState()
            try vault.refresh()
            return true
        } catch {
            return false
        }
    }

    /// Whether everything in the vault is unlocked, not only the after-first-unlock items.
    private static func isOpen(_ vault: BlockingFileVault) -> Bool {
        guard (try? vault.lockState()) == .unlocked else { return false }
        return (try? vault.status())?.unlockedBy?.scope != .afterFirstUnlock
    }

    private static let tooManyVaults = TokenStorageError(
        .resourcesExhausted, operation: "unlock", backend: AgentEndpoint.backend,
        reason: .shortage(.heldVaults))

    /// Unlocks the vault at `path` without a client, and holds it. The vault locks on request, but not when
    /// it is idle. Throws the same errors as ``TokenVault/BlockingFileVault/unlock(with:repairing:)``.
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

    /// Makes the waiters for a turn check whether it is still needed.
    func lookAtTurns() {
        unlockTurns.look()
        listTurns.look()
        decodingTurns.look()
    }

    /// The known statuses of the vaults, in the order of their paths. Reads no file.
    var statuses: [AgentVaultStatus] {
        let (vaults, closed, obstacle) = state.withLock { ($0.vaults, $0.closed, $0.sessionObstacle) }
        let open = vaults.compactMap { path, held in
            (try? held.vault.lockState()).map { state in
                AgentVaultStatus(path: path, state: state, idleTime: held.idleTime, sessionObstacle: obstacle)
            }
        }
        return (open + closed.map { $1.status(at: $0, obstacle) }).sorted { $0.path.string < $1.path.string }
    }

    /// Returns the status of a vault after reading it; `nil` when it is not held. Throws the same errors as
    /// ``TokenVault/BlockingFileVault/status()``.
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
    /// Returns the status of a vault that was closed when it locked.
    func status(of vault: ClosedVault, at path: FilePath) -> AgentVaultStatus {
        vault.status(at: path, state.withLock { $0.sessionObstacle })
    }
}

extension HeldVaults.State {
    /// Whether a vault may be held at `path`, with at most `count` vaults in all.
    func hasRoom(for path: FilePath, _ count: Int) -> Bool {
        vaults[path] != nil || vaults.count < count
    }

    /// Forgets the vaults that were closed longest ago, so that at most `count` vaults are known, including
    /// the open ones.
    mutating func forgetClosed(over count: Int) {
        while vaults.count + closed.count > count,
            let oldest = closed.min(by: { $0.value.since < $1.value.since })
        {
            closed[oldest.key] = nil
        }
    }

    /// Makes the running unlocks of that vault end locked.
    mutating func noteLock(of reference: VaultReference) {
        for number in unlocking.keys { unlocking[number]?.insert(reference) }
    }
}
