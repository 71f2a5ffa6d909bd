internal import Synchronization
internal import TokenVaultCrypto

// Changing the keybag: what slots, devices and revocations have in common.
extension BlockingFileVault {
    func currentKeybag(_ session: VaultSession) throws(TokenStorageError) -> Keybag {
        try session.log.withFreshState { _ in }
        return try session.log.readKeybagInUse().keybag
    }

    /// Changes the keybag durably, and takes the keys that it gives now. `fresh` are the roots it has afterwards,
    /// if these are others.
    func replaceKeybag(
        _ session: VaultSession, roots: KeyRing.Roots, to fresh: KeyRing.Roots? = nil,
        _ change: (inout Keybag) throws(TokenStorageError) -> Void
    ) throws(TokenStorageError) {
        try session.queue.alone { () throws(TokenStorageError) in
            // Readers go on with what they hold: what the new root leads to is theirs in a moment.
            if fresh != nil { session.ring.changesRoot(true) }
            defer { if fresh != nil { session.ring.changesRoot(false) } }
            var changed: Keybag?
            try session.log.replaceKeybag { (current) throws(TokenStorageError) in
                var keybag = current
                do throws(KeybagKeys.Failure) {
                    try KeybagKeys.check(current, roots: roots)
                } catch {
                    throw .file(.conflict, .changedMeanwhile(.root))
                }
                try change(&keybag)
                keybag.generation += 1
                try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                    try KeybagKeys.sign(&keybag, roots: fresh ?? roots)
                }
                guard let bytes = keybag.encoded() else { throw .file(.tooManySlots) }
                changed = keybag
                return bytes
            }
            if let changed { take(changed, session, roots: fresh ?? roots) }
        }
    }

    /// Takes the keys that a keybag of our own making gives, unless the vault was locked meanwhile.
    private func take(_ changed: Keybag, _ session: VaultSession, roots: KeyRing.Roots) {
        remember(changed)
        let locks = session.ring.locks
        guard session.ring.isUnlocked else { return }
        do throws(TokenStorageError) {
            let secrets = try secretStore?.load() ?? KeybagKeys.DeviceSecrets()
            let ring = try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                try KeybagKeys.ring(
                    of: changed, slot: session.ring.facts.slot, roots: try roots.copied(), secrets: secrets)
            }
            session.ring.replace(with: ring, unlessLockedSince: locks)
        } catch {
            // The change was made, and stays so: what the old keys cannot answer waits for the next unlock.
            session.ring.markStale(changed)
        }
    }

    /// The roots, in memory of their own: a lock in the middle of a change wipes the ring's and not these.
    func heldRoots(_ session: VaultSession) throws(TokenStorageError) -> KeyRing.Roots {
        try session.log.withFreshState { _ in }
        try session.refreshKeys()
        guard let roots = session.ring.roots else { throw session.ring.lockedError }
        guard roots.all != nil else {
            throw .file(.notPermitted, .permission(.everything))
        }
        do throws(KeybagKeys.Failure) {
            return try roots.copied()
        } catch {
            if session.ring.isUnlocked { throw .file(.resourcesExhausted, .shortage(.guardedMemory)) }
            throw .file(.locked)
        }
    }
}

extension KeyRing.Roots {
    /// The same keys in memory of their own, for a ring that will wipe them by itself.
    func copied() throws(KeybagKeys.Failure) -> KeyRing.Roots {
        do {
            return KeyRing.Roots(
                all: try all?.copy(), holder: try holder.copy(), passcode: try passcode?.copy())
        } catch {
            throw .crypto(error)
        }
    }
}
