internal import Synchronization
internal import SystemPackage
internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

// Closing what is locked and has nothing to read: no descriptor of it is kept, and its file system can be unmounted.
extension HeldVaults {
    /// A use of the vault that `reference` is about; `nil` when no file of it is open.
    func use(_ reference: VaultReference) -> VaultUse? {
        state.withLock { state in
            guard let held = state.vaults[reference.path],
                reference.identifier.map({ $0 == held.vault.identifier }) ?? true
            else { return nil }
            return VaultUse(held.vault, held.uses)
        }
    }

    /// A use of a vault that is being unlocked at `path`, before whoever locks it may have it closed: it can be asked for its
    /// state all the same.
    func use(of vault: BlockingFileVault, at path: FilePath) -> VaultUse {
        state.withLock { state in
            // Another may have taken its place.
            let held = state.vaults[path].flatMap { $0.vault === vault ? $0 : nil }
            return VaultUse(vault, held?.uses ?? VaultUses())
        }
    }

    /// The vault that `reference` is about, if it was closed when it locked.
    func closed(_ reference: VaultReference) -> ClosedVault? {
        let closed = state.withLock { $0.closed[reference.path] }
        guard let closed, let identifier = reference.identifier else { return closed }
        return closed.identifier == identifier ? closed : nil
    }

    /// Keeps nothing any more of a vault that was closed when it locked. Whether there was something.
    func forgetClosed(_ reference: VaultReference) -> Bool {
        guard closed(reference) != nil else { return false }
        return state.withLock { $0.closed.removeValue(forKey: reference.path) } != nil
    }

    /// The same, if another vault is at its path by now.
    func forgetIfReplaced(_ reference: VaultReference) -> Bool {
        guard let closed = closed(reference),
            let now = BlockingFileVault.identifier(ofFileAt: reference.path), now != closed.identifier
        else { return false }
        return forgetClosed(reference)
    }

    /// Whether a file of a vault is open, or about to be.
    var isAnyOpen: Bool {
        state.withLock { !$0.vaults.isEmpty || !$0.leaving.isEmpty || !$0.unlocking.isEmpty }
    }

    /// Closes the vaults that locked by themselves, or that their last client has left, where nothing can be read.
    func closeUnused() {
        let vaults = state.withLock { state in
            state.vaults.values.filter(\.uses.isWorthALook).map(\.vault)
        }
        close(vaults, atMost: .zero)
    }

    /// Closes those of `vaults` that are locked, used by nobody and have nothing to read; waits for that for `duration` at most.
    /// Each has a thread, since what is looked for in the file system may take for ever.
    func close(_ vaults: [BlockingFileVault], atMost duration: Duration) {
        let locked = vaults.filter { Self.isLocked($0) }
        let identities = Set(locked.map { ObjectIdentifier($0) })
        for vault in locked {
            let identity = ObjectIdentifier(vault)
            guard closing.withLock({ $0.insert(identity).inserted }) else { continue }
            let thread = WorkerThread(name: "agent-closer")
            // Without a thread, at the next look.
            guard thread.isRunning else {
                closing.announce { _ = $0.remove(identity) }
                continue
            }
            thread.run { [self, weak vault] in
                if let vault { closeIfUnused(vault) }
                closing.announce { _ = $0.remove(identity) }
            }
        }
        guard duration > .zero else { return }
        _ = closing.wait(atMost: duration) { $0.isDisjoint(with: identities) ? () : nil }
    }

    private func closeIfUnused(_ vault: BlockingFileVault) {
        guard let (path, held) = state.withLock({ $0.vaults.first { $0.value.vault === vault } }),
            let count = held.uses.whenIdle
        else { return }
        // What cannot be told stays as it is, until it is used or locked again.
        guard let remainder = try? vault.remainderOfLock(), !remainder.hasReadableItems else {
            return held.uses.note(readableAfter: count)
        }
        let storage = vault.storage(service: "")
        let closed = ClosedVault(
            facts: VaultFacts(
                identifier: vault.identifier, state: .locked, supportedPolicies: storage.supportedPolicies,
                defaultPolicy: storage.defaultPolicy),
            idleTime: held.idleTime, emptyFile: remainder.emptyFile)
        let isLeaving = state.withLock { state in
            // Whoever came meanwhile has it open, and may have stored what can be read.
            guard let held = state.vaults[path], held.vault === vault, held.uses.whenIdle == count,
                Self.isLocked(vault), !state.unlocking.values.contains(where: { $0.path == path })
            else { return false }
            state.vaults[path] = nil
            state.closed[path] = closed
            state.leaving[ObjectIdentifier(vault)] = vault
            return true
        }
        if isLeaving { takeLeave(of: vault) }
    }

    private static func isLocked(_ vault: BlockingFileVault) -> Bool {
        (try? vault.lockState()) == .afterFirstUnlock
    }
}
