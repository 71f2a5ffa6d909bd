internal import Synchronization
public import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

// Unlocking: chooses the copy of the keybag, the slot, and the log that both lead to.
extension BlockingFileVault {
    /// Unlocks with one of the vault's slots. For a vault that is unlocked already, checks the method. Throws
    /// `wrongPassphrase` when no slot has this passphrase or key, and `corrupt` or `rolledBack` for a damaged
    /// or an older file. Throws `duplicateVault` for a copy of a vault that this device knows at another
    /// path, unless ``FileVaultConfiguration/allowsOpeningCopies`` is set. Throws `resourcesExhausted` when
    /// the memory for the passphrase's cost is not available.
    ///
    /// A damaged copy of the keybag is repaired, and ``VaultStatus/notes`` says so, unless `repairing` is
    /// false.
    public func unlock(
        with method: UnlockMethod, repairing: Bool = true
    ) throws(TokenStorageError) {
        try unlock(with: method, repairing: repairing, unlessToldToLockSince: nil)
    }

    /// The number of locks since the first unlock.
    package var lockCount: Int {
        let (session, isClosed) = state.withLock { ($0.session, $0.isClosed) }
        return isClosed ? .max : session?.ring.locks ?? 0
    }

    /// The number of locks that were ordered, for ``unlock(with:repairing:unlessToldToLockSince:)``: all but
    /// those at the end of the vault's time.
    package var lockOrders: Int { state.withLock { $0.session }?.ring.lockOrders ?? 0 }

    /// Unlocks the vault, unless it was unlocked before and was ordered to lock since `orders` was read. That
    /// lock came while the key was derived, and covers this unlock too: no key is taken over. Throws nothing
    /// for that.
    package func unlock(
        with method: UnlockMethod, repairing: Bool = true, unlessToldToLockSince orders: Int?
    ) throws(TokenStorageError) {
        try during("unlock") { () throws(TokenStorageError) in
            try checkUsable()
            try method.check()
            if let session = state.withLock({ $0.session }) {
                let (ring, current) = try openKeybagInUse(of: session, with: method)
                session.ring.replace(with: ring, unlessToldToLockSince: orders)
                state.withLock { $0.keybag = current }
                try countAgain()
                tellObservers(ofFirstUnlock: false)
                if repairing { try? renewOwnSet(session) }
                return
            }
            try unlockFirst(repairing: repairing) { (copy) throws(TokenStorageError) in
                try openKeybag(copy.keybag, with: method)
            }
        }
    }

    /// Returns the keys of the keybag in use, and the keybag. Derives them again when another keybag was put in use
    /// meanwhile.
    private func openKeybagInUse(
        of session: VaultSession, with method: UnlockMethod
    ) throws(TokenStorageError) -> (KeyRing, Keybag) {
        let deadline = Deadline(after: configuration.lockLimit)
        repeat {
            try session.log.lookAtOthers()
            let copy = try session.log.readKeybagInUse()
            let ring = try openKeybag(copy.keybag, with: method)
            do throws(TokenStorageError) {
                if try session.log.noteOpening(under: ring.facts.succession, of: copy.record) {
                    try beginCounting()
                    ring.note(copy.record)
                    return (ring, copy.keybag)
                }
            } catch {
                ring.wipeEverything()
                guard error.reason == .changedMeanwhile(.keys) else { throw error }
            }
            ring.wipeEverything()
        } while !deadline.hasPassed
        throw .file(.timedOut, .deadline(.keybagChanges))
    }

    /// Unlocks a vault that was just made, with the keys that it was made with: deriving them again would
    /// cost the user time. If another process changed the vault since, opens the vault with `method`.
    func unlockNew(
        with method: UnlockMethod, _ keybag: Keybag, _ ring: KeyRing
    ) throws(TokenStorageError) {
        try during("unlock") { () throws(TokenStorageError) in
            let made = keybag.encoded()
            var unused: KeyRing? = ring
            defer { unused?.wipeEverything() }
            try unlockFirst(repairing: true) { (copy) throws(TokenStorageError) in
                guard copy.bytes == made, let ring = unused else {
                    return try openKeybag(copy.keybag, with: method)
                }
                unused = nil
                return ring
            }
        }
    }

    /// Opens a copy of the keybag.
    private typealias Opening = (KeybagCopy) throws(TokenStorageError) -> KeyRing

    /// Performs the first unlock of a vault.
    private func unlockFirst(repairing: Bool, by opening: Opening) throws(TokenStorageError) {
        let place = try checkPlace()
        let isCopy = if case .elsewhere = place { true } else { false }
        let opened = try openSession(isCopy: isCopy, by: opening)
        do throws(TokenStorageError) {
            try beginCounting()
        } catch {
            opened.ring.wipeEverything()
            throw error
        }
        let lost = state.withLock { state in
            if state.isClosed || state.session != nil { return true }
            state.session = opened
            return false
        }
        if lost { opened.ring.wipeEverything() }
        try countAgain()
        try checkUsable()
        tellObservers(ofFirstUnlock: !lost)
        guard repairing, !isCopy, location.readOnlyReason == nil else { return }
        // A handle that may be reading a copy must not record a move of the vault.
        if !configuration.allowsOpeningCopies { rememberMove(after: place) }
        if opened.ring.facts.hasPasscodeSlot == false { try? opened.removeDestroyedItems() }
        healIfNeeded(opened)
        try? renewOwnSet(opened)
    }

    private func openSession(
        isCopy: Bool, by opening: Opening
    ) throws(TokenStorageError) -> VaultSession {
        // If the keybag changes while a key is derived, the copy that was read is out of date.
        let deadline = Deadline(after: configuration.lockLimit)
        repeat {
            if let session = try openSessionOnce(isCopy: isCopy, by: opening) { return session }
        } while !deadline.hasPassed
        throw .file(.timedOut, .deadline(.keybagChanges))
    }

    /// Returns the file to unlock and the copies of its keybag: those of the opened vault, unless there are
    /// others by now.
    private func openedFile() throws(TokenStorageError) -> (any DiskFile, KeybagCopies) {
        let opened = state.withLock { state in
            defer { state.opened = nil }
            return state.opened
        }
        guard let opened, try isInPlace(opened.file) else {
            let file = try VaultFile.open(location, for: .use)
            return (file.file, try file.keybags)
        }
        let front = try KeybagCopies.front(of: opened.file.file)
        let isUnchanged = (try? opened.file.front.get()).map { isSame($0, front) } ?? false
        return (opened.file.file, isUnchanged ? opened.keybags : try KeybagCopies(front: front))
    }

    /// Returns whether `opened` is at the vault's path, and still this user's alone.
    private func isInPlace(_ opened: VaultFile) throws(TokenStorageError) -> Bool {
        let location = location
        let there = try onDisk { () throws(SystemFailure) in
            try location.directory.attributes(of: location.name)
        }
        guard let there, there.identity == opened.attributes.identity else { return false }
        // Opening the file again reports the right reason.
        return (try? there.requirePrivate(location.path)) != nil
    }

    /// Returns the session. Returns `nil` when the keybag that was read is no longer in use and another one
    /// is there now.
    private func openSessionOnce(
        isCopy: Bool, by opening: Opening
    ) throws(TokenStorageError) -> VaultSession? {
        let (file, copies) = try openedFile()
        var failure = TokenStorageError.file(.wrongPassphrase)
        /// The keybags that the log named while the copies were tried, and were not the tried one.
        var named: [KeybagRecord] = []
        for copy in copies.whole {
            let ring: KeyRing
            do throws(TokenStorageError) {
                ring = try opening(copy)
            } catch {
                // Keeps an error that says more than that no slot fits, for example a mistyped recovery key.
                if error.code != .wrongPassphrase || error.reason != nil { failure = error }
                continue
            }
            let session: VaultSession
            do throws(TokenStorageError) {
                session = try VaultSession(
                    ring: ring, location: location, file: file, store: secretStore,
                    configuration: configuration, hub: hub, isCopy: isCopy)
            } catch {
                ring.wipeEverything()
                guard error.code == .corrupt || error.reason == .ancestry(.unrelatedKeys),
                    Set(copies.vaults).count == 1
                else { throw error }
                // A holder of former roots can write a copy with another log key. The copy in use may be
                // whole.
                if failure.code != .forked { failure = error }
                continue
            }
            let record = session.log.keybagRecord
            guard copy.isNamed(by: record) else {
                // Another copy opens the log but not the vault.
                ring.wipeEverything()
                if copy.keybag.generation > record.generation, !copy.isNext(after: record) {
                    failure = .file(.rolledBack)
                }
                named.append(record)
                continue
            }
            do throws(TokenStorageError) {
                try session.log.noteOpening(under: ring.facts.succession, of: copy.record)
            } catch {
                ring.wipeEverything()
                if error.reason == .changedMeanwhile(.keys) { return nil }
                throw error
            }
            ring.note(copy.record)
            state.withLock { $0.keybag = copy.keybag }
            return session
        }
        if let last = named.last {
            let now = try VaultFile.open(location, for: .use).keybags
            // Another process changed the keybag meanwhile.
            if now.whole.first?.bytes != copies.whole.first?.bytes || named.contains(where: { $0 != last }) {
                return nil
            }
            if failure.code == .wrongPassphrase, !copies.whole.contains(where: { $0.isNamed(by: last) }) {
                throw .file(.corrupt, .damaged(.keybagInUse))
            }
        }
        throw failure
    }

    func openKeybag(
        _ keybag: Keybag, with method: UnlockMethod
    ) throws(TokenStorageError) -> KeyRing {
        let secrets = try secretStore?.load() ?? KeybagKeys.DeviceSecrets()
        return try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
            try KeybagKeys.open(
                keybag, with: method, secrets: secrets, within: configuration.derivationLimit)
        }
    }

    /// Repairs a copy of the keybag that differs from the other one. A failure does not refuse the unlock.
    private func healIfNeeded(_ session: VaultSession) {
        guard let front = try? KeybagCopies.front(of: session.log.state.withLock { $0.file }),
            !isSame(
                Array(front.prefix(VaultFormat.keybagLength)),
                Array(front.dropFirst(VaultFormat.keybagLength)))
        else { return }
        let wasDamaged: Bool?
        do throws(TokenStorageError) {
            wasDamaged = try session.queue.alone { () throws(TokenStorageError) in
                try session.log.healKeybag()
            }
        } catch {
            // Other keys replaced these meanwhile, which says nothing about the copies.
            guard error.code != .locked else { return }
            wasDamaged = nil
        }
        let note =
            switch wasDamaged {
            case true?: "a damaged copy of the keybag was replaced by the one in use"
            case false?: ""
            case nil: "one of the two copies of the keybag is damaged and could not be replaced"
            }
        if !note.isEmpty { state.withLock { $0.notes.append(note) } }
    }
}

extension KeybagKeys {
    /// Runs `body`, which opens or makes keybags, and turns its failures into ``TokenStorageError``.
    static func translating<Value>(
        _ body: () throws(Failure) -> Value
    ) throws(TokenStorageError) -> Value {
        do { return try body() } catch { throw self.error(for: error) }
    }

    /// Returns the caller's error for a failure.
    static func error(for failure: Failure) -> TokenStorageError {
        switch failure {
        case .noSlot: return .file(.wrongPassphrase)
        case .mistyped(let groups):
            return .file(.wrongPassphrase, .mistypedGroups(groups))
        case .noRoot: return .file(.notPermitted, .permission(.everything))
        case .memory(let needed, let allowed):
            return .file(
                .resourcesExhausted,
                .derivationMemoryOfGroup(needed: Int(needed >> 20), left: Int(allowed >> 20)))
        case .budget(let needed, .tooMuch(let allowed)):
            return .file(
                .resourcesExhausted, .derivationMemory(needed: Int(needed >> 20), left: Int(allowed >> 20)))
        case .budget(let needed, .inUse):
            return .file(.resourcesExhausted, .derivationMemoryInUse(needed: Int(needed >> 20)))
        case .time(let needed):
            return .file(
                .timedOut,
                .derivationTime(milliseconds: 100 * Int((needed / .milliseconds(100)).rounded(.up))))
        case .corrupt: return .file(.corrupt, .damaged(.keybag))
        case .crypto(let error): return .crypto(error)
        }
    }
}
