internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultCrypto

// Changing the keybag: the common part of slots, devices and key rotation.
extension BlockingFileVault {
    func currentKeybag(_ session: VaultSession) throws(TokenStorageError) -> Keybag {
        try session.log.withCheckedState { _ in }
        return try session.log.readKeybagInUse().keybag
    }

    /// Changes the keybag durably and takes the keys that the new keybag gives. `fresh` are the new roots, if
    /// the change replaces the roots. Where the keybag is full, its oldest former roots go, if `droppingFormerRoots`.
    func replaceKeybag(
        _ session: VaultSession, roots: KeyRing.Roots, to fresh: KeyRing.Roots? = nil,
        droppingFormerRoots: Bool = true,
        _ change: (inout Keybag) throws(TokenStorageError) -> Void
    ) throws(TokenStorageError) {
        try session.queue.alone { () throws(TokenStorageError) in
            let log = session.log
            defer { log.comingKeybag.withLock { $0 = nil } }
            var changed: (keybag: Keybag, record: KeybagRecord)?
            var former: Anchor.Opening?
            do throws(TokenStorageError) {
                try log.replaceKeybag { (current) throws(TokenStorageError) in
                    var keybag = current
                    guard try KeybagKeys.isAuthentic(current, under: roots) else {
                        throw .file(.conflict, .changedMeanwhile(.root))
                    }
                    try change(&keybag)
                    keybag.generation += 1
                    let succession = try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                        if droppingFormerRoots {
                            try KeybagKeys.makeRoom(in: &keybag, under: fresh ?? roots)
                        }
                        try KeybagKeys.sign(&keybag, roots: fresh ?? roots)
                        return try KeybagKeys.succession(of: keybag, under: fresh ?? roots)
                    }
                    guard let bytes = keybag.encoded() else {
                        throw .file(.tooManySlots, .slots(.keysFull))
                    }
                    let record = KeybagRecord(
                        generation: keybag.generation, digest: Keybag.digest(of: bytes))
                    changed = (keybag, record)
                    // The commit that names the keybag takes the names of its roots to the anchor.
                    former = log.anchor.use(succession, of: record)
                    return bytes
                }
            } catch {
                if let changed { log.anchor.restore(former, insteadOf: changed.record) }
                throw error
            }
            if let changed { take(changed.keybag, changed.record, session, roots: fresh ?? roots) }
        }
    }

    /// Takes the keys that a keybag made by this process gives, unless the vault was locked meanwhile.
    private func take(
        _ changed: Keybag, _ record: KeybagRecord, _ session: VaultSession, roots: KeyRing.Roots
    ) {
        remember(changed)
        let locks = session.ring.locks
        do throws(TokenStorageError) {
            let secrets = try secretStore?.load() ?? KeybagKeys.DeviceSecrets()
            let ring = try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                try KeybagKeys.ring(
                    of: changed, slot: session.ring.facts.slot, roots: try roots.copied(), secrets: secrets)
            }
            ring.note(record)
            let succession = ring.facts.succession
            let holderCode = try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                try KeybagKeys.holderCode(of: changed, under: roots)
            }
            if session.ring.isUnlocked, session.ring.replace(with: ring, unlessLockedSince: locks) {
                holderCode.wipe()
            } else {
                // A lock came meanwhile. Items that are readable after the first unlock stay readable with
                // the held keys.
                ring.wipeEverything()
                session.ring.markStale(changed, record, holder: (holderCode, succession))
            }
            // If the anchor cannot move now, the next unlock moves it.
            _ = try? session.log.noteOpening(under: succession, of: record)
        } catch {
            // The change is durable and stays. Reads that the old keys cannot answer wait for the next
            // unlock.
            session.ring.markStale(changed, record)
        }
    }

    /// Returns the roots in separate memory: a lock during a change wipes the ring's roots and not these.
    func heldRoots(_ session: VaultSession) throws(TokenStorageError) -> KeyRing.Roots {
        try session.log.withCheckedState { _ in }
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
    /// Returns the same keys in separate memory, for a ring that will wipe its keys by itself.
    func copied() throws(KeybagKeys.Failure) -> KeyRing.Roots {
        do {
            return KeyRing.Roots(
                all: try all?.copy(), holder: try holder.copy(), passcode: try passcode?.copy())
        } catch {
            throw .crypto(error)
        }
    }
}
