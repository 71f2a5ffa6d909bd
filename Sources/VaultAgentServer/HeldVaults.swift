internal import Synchronization
package import SystemPackage
package import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

/// The vaults that the agent holds: those that somebody has unlocked since it started. They stay held when they lock.
package final class HeldVaults: Sendable {
    /// A vault that is held.
    struct Held: Sendable {
        let vault: BlockingFileVault
        var idleTime: Duration?
    }

    private struct State {
        var vaults: [FilePath: Held] = [:]
        /// How often all were locked: what is unlocked meanwhile is locked.
        var locksOfAll = 0
        /// The vault that is being unlocked, and how often it was locked since.
        var unlocking: FilePath?
        var locksOfThat = 0
        var hasEnded = false
        var sessionObstacle: String? = "the agent does not watch the session"
    }

    private let state = Mutex(State())
    private let isUnlocking = Monitor(false)
    private let limits: AgentLimits

    package init(limits: AgentLimits) { self.limits = limits }

    /// The vault that `reference` is about, if it is held.
    func vault(_ reference: VaultReference) -> BlockingFileVault? { held(reference)?.vault }

    private func held(_ reference: VaultReference) -> Held? {
        let held = state.withLock { $0.vaults[reference.path] }
        guard let held, let identifier = reference.identifier else { return held }
        return held.vault.identifier == identifier ? held : nil
    }

    /// Unlocks a vault, and holds it from then on. Throws as ``TokenVault/BlockingFileVault/unlock(with:mending:)``, and
    /// `timedOut` while others unlock.
    func unlock(
        _ reference: VaultReference, _ order: UnlockOrder
    ) throws(TokenStorageError) -> BlockingFileVault {
        let isTurn = isUnlocking.wait(atMost: limits.unlockTime) { isUnlocking in
            if isUnlocking { return nil as Bool? }
            isUnlocking = true
            return true
        }
        guard isTurn == true else {
            throw TokenStorageError(
                .timedOut, operation: "unlock", backend: AgentPlace.backend,
                underlying: "others are unlocking",
                advice: "try again")
        }
        defer { isUnlocking.announce { $0 = false } }
        let path = VaultReference(at: reference.path).path
        guard path == reference.path else {
            throw TokenStorageError(
                .invalidArgument, operation: "unlock", backend: AgentPlace.backend,
                underlying: "the vault's path leads through a link",
                advice: "name it from the root and without links")
        }
        let locksBefore = state.withLock { state in
            state.unlocking = path
            state.locksOfThat = 0
            return state.locksOfAll
        }
        var configuration = FileVaultConfiguration(stateDirectory: order.stateDirectory)
        configuration.automaticLock = order.idleTime.map { .whenIdle(for: $0) }
        // What is at the path now: another vault may have taken the place of the one that is held.
        let fresh = try BlockingFileVault.open(at: path, configuration: configuration)
        let (known, isFull) = state.withLock { ($0.vaults[path], $0.vaults.count >= limits.vaults) }
        let locks = known?.vault.lockCount ?? 0
        let vault: BlockingFileVault
        var idleTime = order.idleTime
        if let known, known.vault.identifier == fresh.identifier, Self.isInPlace(known.vault) {
            defer { fresh.close() }
            let wasOpen = Self.isOpen(known.vault)
            if wasOpen, try opensLess(fresh, with: order.method) { return known.vault }
            vault = known.vault
            try vault.unlock(with: order.method, unlessLockedSince: locks)
            if wasOpen, !order.isTimeAsked { idleTime = known.idleTime }
            try vault.lockAutomatically(idleTime.map { .whenIdle(for: $0) })
        } else {
            guard known != nil || !isFull else {
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
        let (isLocked, hasEnded) = state.withLock { state in
            let isLocked =
                state.locksOfAll != locksBefore || state.locksOfThat > 0
                || vault === known?.vault && vault.lockCount != locks
            // Before anybody can ask for it.
            if isLocked { vault.lock() }
            if !state.hasEnded { state.vaults[path] = Held(vault: vault, idleTime: idleTime) }
            return (isLocked, state.hasEnded)
        }
        if let known, known.vault !== vault { known.vault.close() }
        if hasEnded { vault.close() }
        // Who locked while the key was derived meant this too.
        if isLocked {
            throw TokenStorageError(
                .locked, operation: "unlock", backend: AgentPlace.backend,
                underlying: "it was locked again meanwhile")
        }
        return vault
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
            try vault.unlock(with: method, mending: false)
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
        .resourcesExhausted, operation: "unlock", backend: AgentPlace.backend,
        underlying: "the agent holds as many vaults as it may",
        advice: "end it with \"vaultctl agent --stop\", and unlock those that are used")

    /// Unlocks the vault at `path` without a client, and holds it; it locks when it is told to, not when it is idle. Throws
    /// as ``TokenVault/BlockingFileVault/unlock(with:mending:)``.
    package func unlock(
        at path: FilePath, with method: UnlockMethod, stateDirectory: FilePath?
    ) throws(TokenStorageError) {
        let order = UnlockOrder(method: method, stateDirectory: stateDirectory, idleTime: nil)
        _ = try unlock(VaultReference(at: path), order)
    }

    private func countLock(of reference: VaultReference) {
        state.withLock { state in if state.unlocking == reference.path { state.locksOfThat += 1 } }
    }

    /// Locks one vault, at once; false when it is not held.
    func lock(_ reference: VaultReference) -> Bool {
        countLock(of: reference)
        guard let vault = vault(reference) else { return false }
        vault.lock()
        return true
    }

    /// Locks every vault, at once.
    package func lockAll() {
        let vaults = state.withLock { state in
            state.locksOfAll += 1
            return state.vaults.values.map(\.vault)
        }
        for vault in vaults { vault.lock() }
    }

    /// Notes why vaults do not lock with the person's session, for who asks.
    package func note(sessionObstacle: String?) {
        // Each vault's status has it, and those of all vaults go into one frame.
        let text = sessionObstacle.map { String(decoding: $0.utf8.prefix(256), as: UTF8.self) }
        state.withLock { $0.sessionObstacle = text }
    }

    /// Lets go of a vault: wipes all of its keys. False when it is not held.
    func close(_ reference: VaultReference) -> Bool {
        countLock(of: reference)
        guard let held = held(reference) else { return false }
        state.withLock { state in
            if state.vaults[reference.path]?.vault === held.vault { state.vaults[reference.path] = nil }
        }
        held.vault.close()
        return true
    }

    /// Lets go of a vault that is not the one at its path any more: another one was made there, or its file was removed and
    /// put back elsewhere or anew. Whether it was so.
    func closeIfReplaced(_ reference: VaultReference) -> Bool {
        guard let held = held(reference),
            let now = try? BlockingFileVault.open(
                at: reference.path, configuration: FileVaultConfiguration(stateDirectory: nil)),
            now.identifier != held.vault.identifier || Self.isGone(held.vault)
        else { return false }
        return close(reference)
    }

    /// Whether there is nothing any more where the vault was.
    private static func isGone(_ vault: BlockingFileVault) -> Bool {
        do throws(TokenStorageError) {
            try vault.refresh()
            return false
        } catch {
            return error.code == .unavailable
        }
    }

    /// Lets go of every vault, for good.
    package func closeAll() {
        let vaults = state.withLock { state in
            state.hasEnded = true
            defer { state.vaults = [:] }
            return state.vaults.values.map(\.vault)
        }
        for vault in vaults { vault.close() }
    }

    /// What is known of the vaults, in the order of their paths; without `looking` nothing is read for it.
    func statuses(of reference: VaultReference? = nil, looking: Bool) -> [AgentVaultStatus] {
        let (vaults, obstacle) = state.withLock { ($0.vaults, $0.sessionObstacle) }
        let known = vaults.sorted { $0.key.string < $1.key.string }
        return known.compactMap { path, held in
            if let reference, reference.path != path || self.held(reference) == nil { return nil }
            guard let state = try? held.vault.lockState() else { return nil }
            var status = AgentVaultStatus(
                path: path, state: state, idleTime: held.idleTime, sessionObstacle: obstacle)
            if looking, let found = try? held.vault.status() {
                status.state = found.state
                status.items = found.items
                status.reclaimable = found.reclaimable
                status.isAnchored = found.rollbackProtection == .anchored
                status.isEnrolled = found.device.map { $0 == .enrolled }
                status.slot = found.unlockedBy?.id
            }
            return status
        }
    }
}
