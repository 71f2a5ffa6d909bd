internal import Synchronization
internal import SystemPackage
internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

// Closes locked vaults in which nothing can be read. The agent keeps no descriptor of such a vault, so that
// its file system can be unmounted.
extension HeldVaults {
    /// The agent's state of a vault.
    enum Holding {
        /// The vault's file is open.
        case open(VaultUse)
        /// The vault was closed when it locked.
        case closed(ClosedVault)
        case none
    }

    /// Returns the agent's state of the vault in `reference`; an open vault comes with a use of that kind.
    func holding(_ reference: VaultReference, for kind: VaultUses.Kind) -> Holding {
        state.withLock { state in
            let path = reference.path
            if let held = state.vaults[path], reference.isMeant(held.vault.identifier) {
                return .open(VaultUse(held.vault, held.uses, kind))
            }
            if let closed = state.closed[path], reference.isMeant(closed.identifier) {
                return .closed(closed)
            }
            return .none
        }
    }

    /// Returns a use of a vault that is being unlocked at `path`: a lock does not close it before the unlock
    /// is answered.
    func use(of vault: BlockingFileVault, at path: FilePath) -> VaultUse {
        state.withLock { state in
            // Another vault may have taken the place of this one.
            let held = state.vaults[path].flatMap { $0.vault === vault ? $0 : nil }
            return VaultUse(vault, held?.uses ?? VaultUses(), .changing)
        }
    }

    /// Forgets a vault that was closed when it locked, if another vault is at its path now. Returns whether
    /// that is so.
    func forgetIfReplaced(_ closed: ClosedVault, at path: FilePath) -> Bool {
        guard let now = BlockingFileVault.identifier(ofFileAt: path), now != closed.identifier else {
            return false
        }
        state.withLock { state in
            // The other vault may have been unlocked and closed meanwhile.
            if state.closed[path]?.identifier == closed.identifier { state.closed[path] = nil }
        }
        return true
    }

    /// Whether the file of a vault is open, or about to be.
    var isAnyOpen: Bool {
        state.withLock { !$0.vaults.isEmpty || !$0.leaving.isEmpty || !$0.unlocking.isEmpty }
    }

    /// Closes vaults in which nothing can be read, after they locked automatically or lost their last client.
    func closeUnused() {
        let vaults = state.withLock { state in
            state.vaults.values.filter(\.uses.isWorthALook).map(\.vault)
        }
        close(vaults, atMost: .zero)
    }

    /// Closes the locked vaults among `vaults` that are unused and have nothing to read. Waits for `duration`
    /// at most. Each vault has a thread, since its file system may hang.
    func close(_ vaults: [BlockingFileVault], atMost duration: Duration) {
        let locked = vaults.filter { Self.isLocked($0) }
        let identities = Set(locked.map { ObjectIdentifier($0) })
        for vault in locked {
            let identity = ObjectIdentifier(vault)
            guard closing.withLock({ $0.insert(identity).inserted }) else { continue }
            let thread = WorkerThread(name: "agent-closer")
            // Without a thread, the next check tries again.
            guard thread.isRunning else {
                closing.announce { _ = $0.remove(identity) }
                continue
            }
            thread.run { [self, weak vault] in
                if let vault { closeIfUnused(vault, by: Deadline(after: limits.closingTime)) }
                closing.announce { _ = $0.remove(identity) }
            }
        }
        guard duration > .zero else { return }
        _ = closing.wait(atMost: duration) { $0.isDisjoint(with: identities) ? () : nil }
    }

    /// Closes the vault if nothing in it can be read. Checks again after each use during the check, until
    /// `deadline`.
    private func closeIfUnused(_ vault: BlockingFileVault, by deadline: Deadline) {
        repeat {
            guard let (path, held) = state.withLock({ $0.vaults.first { $0.value.vault === vault } }),
                let changes = held.uses.changesWhenIdle(by: deadline)
            else { return }
            let remainder: LockedRemainder
            do throws(TokenStorageError) {
                remainder = try vault.remainderOfLock()
            } catch {
                return held.uses.noteFailure(after: changes, lookingAgainWithin: limits.nextLookTime)
            }
            guard !remainder.hasReadableItems else {
                return held.uses.noteReadable(after: changes, lookingAgainIn: limits.nextLookTime)
            }
            if close(vault, at: path, remainder, after: changes) { return }
        } while !deadline.hasPassed
    }

    /// Closes a vault that had nothing to read after `changes` changes. Returns false when it was used
    /// meanwhile: there may be something to read now.
    private func close(
        _ vault: BlockingFileVault, at path: FilePath, _ remainder: LockedRemainder, after changes: UInt64
    ) -> Bool {
        let storage = vault.storage(service: "")
        let facts = VaultInfo(
            identifier: vault.identifier, state: .locked, supportedPolicies: storage.supportedPolicies,
            defaultPolicy: storage.defaultPolicy)
        let (isOver, isLeaving) = state.withLock { state -> (Bool, Bool) in
            let isUnlocking = state.unlocking.values.contains { $0.path == path }
            guard let held = state.vaults[path], held.vault === vault, Self.isLocked(vault), !isUnlocking
            else {
                return (true, false)
            }
            guard held.uses.changesWhenIdle == changes else { return (false, false) }
            state.vaults[path] = nil
            state.closed[path] = ClosedVault(
                facts: facts, idleTime: held.idleTime, emptyFile: remainder.emptyFile, since: .now)
            state.leaving[ObjectIdentifier(vault)] = vault
            return (true, true)
        }
        if isLeaving { takeLeave(of: vault) }
        return isOver
    }

    private static func isLocked(_ vault: BlockingFileVault) -> Bool {
        (try? vault.lockState()) == .afterFirstUnlock
    }
}

extension VaultReference {
    /// Whether the reference is to the vault with that identifier, provided that the path matches.
    func isMeant(_ identifier: String) -> Bool { self.identifier.map { $0 == identifier } ?? true }
}
