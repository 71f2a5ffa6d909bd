internal import Synchronization
public import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The result of giving a vault a new root key.
public struct RevocationReport: Sendable {
    /// The slots that were removed.
    public var removed: [VaultSlot]
    /// The number of items that were sealed again.
    public var resealed: Int
    /// The number of items that still open with older keys: another device's, or any when ``deferredReason``
    /// is set.
    public var remaining: Int
    /// The reason that sealing again was put off, for example a full disk; `nil` when it was done. The new
    /// keys hold for everything written from now on, and ``BlockingFileVault/compact(progress:)`` seals the
    /// rest.
    public var deferredReason: TokenStorageError.Code?
    /// The number of replaced values that were to be kept, but are damaged: they are gone.
    public var damagedValues = 0
}

// A new root key: an old copy of the file and its unlock method open nothing that is written from then on.
// Once the items are sealed again, they open nothing of the new file.
extension BlockingFileVault {
    /// Gives the vault a new root key and new class keys, removes the slots `ids`, and seals the items again.
    ///
    /// A slot leads to the root key through a key that only its own passphrase or key file gives. `methods`
    /// must open the slots that stay, including the slot of the unlock. A slot that no method opens is an
    /// error, or is removed with `droppingOthers`. The keybag changes first, durably. Where it has no room for the new
    /// keys, items are sealed again before that, so that earlier keys can go. From then on, other
    /// processes that have the vault open are locked out until they unlock again. Then a compaction seals
    /// again every item whose keys are held; `progress` gets the items done and the total. Items of other
    /// devices stay under their own keys until that device opens the vault.
    ///
    /// With the old root key, item names can still be guessed and confirmed, and their number and sizes seen:
    /// the log keeps its key.
    ///
    /// The vault must be unlocked (`locked`) by a slot that opens everything (`notPermitted`). Throws
    /// `slotNotFound`, `lastSlot`, and `notPermitted` for a slot that would be lost. Throws `conflict` when
    /// the slots changed meanwhile, and `tooManySlots` where the keybag has no room for the new keys.
    public func rotateKeys(
        keeping methods: [UnlockMethod], removing ids: Set<Int> = [], droppingOthers: Bool = false,
        progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> RevocationReport {
        try during("revoke") { () throws(TokenStorageError) in
            try replaceRoot(
                methods.map { (old: $0, new: $0) }, removing: ids, droppingOthers: droppingOthers,
                progress: progress)
        }
    }

    /// Replaces the passphrase `current` by `new` and gives the vault a new root key. Old copies of the file
    /// with the old passphrase open nothing that is written from now on. `methods` must open the other slots
    /// that stay; the rest is as for ``rotateKeys(keeping:removing:droppingOthers:progress:)``. Throws the
    /// same errors, `wrongPassphrase`, and `invalidArgument` for an empty passphrase.
    public func rotatePassphrase(
        _ current: Secret, replacedBy new: Secret, keeping methods: [UnlockMethod] = [],
        droppingOthers: Bool = false, progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> RevocationReport {
        try during("revoke") { () throws(TokenStorageError) in
            try UnlockMethod.passphrase(current).check()
            try UnlockMethod.passphrase(new).checkAsNew()
            let before = try currentKeybag(try session())
            let (slot, _) = try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                try KeybagKeys.openSlot(
                    of: before, with: .passphrase(current), within: configuration.derivationLimit)
            }
            guard slot.kind == .passphrase else {
                throw .file(.notPermitted, .permission(.changeRecoveryKey))
            }
            return try replaceRoot(
                [(old: .passphrase(current), new: .passphrase(new))] + methods.map { (old: $0, new: $0) },
                removing: [], droppingOthers: droppingOthers, progress: progress)
        }
    }

    /// Replaces the root key. Without `isResealing`, stops where a crash might, between the new keybag and
    /// the compaction.
    package func replaceRoot(
        _ methods: [(old: UnlockMethod, new: UnlockMethod)], removing ids: Set<Int>, droppingOthers: Bool,
        isResealing: Bool = true, progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> RevocationReport {
        for method in methods {
            try method.old.check()
            try method.new.check()
        }
        let session = try session()
        let held = try heldRoots(session)
        if isResealing {
            // Without the new file that the items move to, only half of the change would be done.
            try HardLinks(location: location).requireNone(of: session.log.state.withLock { $0.file })
        }
        func prepared() throws(TokenStorageError) -> RootChange {
            var change = RootChange(
                before: try currentKeybag(session), cost: try configuration.keyDerivationCost.checked(),
                created: configuration.clock(), limit: configuration.derivationLimit)
            try change.choose(methods, removing: ids, droppingOthers: droppingOthers)
            try change.derive(
                from: held, slot: session.ring.facts.slot,
                secrets: try secretStore?.load() ?? KeybagKeys.DeviceSecrets())
            return change
        }
        let change: RootChange
        var damagedValues = 0
        do throws(TokenStorageError) {
            change = try prepared()
        } catch {
            guard error.reason == .slots(.keysFull), isResealing else { throw error }
            damagedValues = try makeRoomForKeys(session)
            change = try prepared()
        }
        let before = change.before
        guard let fresh = change.fresh else { throw .file(.internalError) }
        let losesPasscode = before.hasPassphrase && fresh.passcode == nil
        var isPepperGone = false
        do throws(TokenStorageError) {
            // The passphrase given to keep its slot does not give this session more access.
            let reach = KeyRing.Roots(
                all: fresh.all, holder: fresh.holder,
                passcode: held.passcode == nil ? nil : fresh.passcode)
            try replaceKeybag(session, roots: held, to: reach) { (keybag) throws(TokenStorageError) in
                guard keybag == before else {
                    throw .file(.conflict, .changedMeanwhile(.slots))
                }
                if losesPasscode {
                    if try !isCopy() { try secretStore?.removePepper() }
                    isPepperGone = true
                }
                keybag = change.after
            }
        } catch {
            guard isPepperGone else { throw error }
            throw .file(.outcomeUnknown, .passcodeItemsDeleted(until: .keyRotation, error.reason))
        }
        change.wipe()
        if losesPasscode { try session.removeDestroyedItems() }
        var report = RevocationReport(
            removed: change.removed, resealed: 0, remaining: 0, damagedValues: damagedValues)
        if isResealing { reseal(session, &report, progress: progress) }
        report.remaining = try itemsUnderOlderKeys(session)
        return report
    }

    private func reseal(
        _ session: VaultSession, _ report: inout RevocationReport, progress: ((Int, Int) -> Void)?
    ) {
        let before = (try? itemsUnderOlderKeys(session)) ?? 0
        do throws(TokenStorageError) {
            let compaction = try session.queue.alone { () throws(TokenStorageError) in
                try session.log.compact(progress: progress, resealing: session.resealing())
            }
            report.damagedValues += compaction.damagedValues
            report.resealed = before - (try itemsUnderOlderKeys(session))
            try removeUnusedKeys(session)
        } catch {
            report.deferredReason = error.code
        }
    }

    /// Returns the number of items sealed under keys that are not the newest of their class. Items under a
    /// set whose device has not taken the new root key yet count too.
    func itemsUnderOlderKeys(_ session: VaultSession) throws(TokenStorageError) -> Int {
        let keybag = try currentKeybag(session)
        let behind = Set(
            keybag.sets.filter { $0.olderRoots != nil }.map { DeviceKey.setTag(of: $0.device) })
        return try session.log.entries().0.count { _, entry in
            guard let newest = keybag.newestVersion(of: entry.policy, setTag: entry.setTag) else {
                return false
            }
            return behind.contains(entry.setTag) || entry.keyVersion < newest
        }
    }

    /// Removes the class keys from the keybag that are not the newest of their class and that no item needs.
    func removeUnusedKeys(_ session: VaultSession) throws(TokenStorageError) {
        let current = try currentKeybag(session)
        guard session.ring.roots?.all != nil, current.hasSeveralVersions else { return }
        var pruned = current
        try removeUnusedKeys(from: &pruned, session)
        guard pruned != current else { return }
        try replaceKeybag(session, roots: try heldRoots(session)) { (keybag) throws(TokenStorageError) in
            try removeUnusedKeys(from: &keybag, session)
        }
    }

    private func removeUnusedKeys(
        from keybag: inout Keybag, _ session: VaultSession
    ) throws(TokenStorageError) {
        var used: Set<KeyRing.ClassName> = []
        for entry in try session.log.lastingEntries() {
            var name = KeyRing.ClassName(of: entry)
            used.insert(name)
            // The key that proves the origin of the item's policy.
            guard let policy = AccessPolicy(number: entry.policy),
                let gate = PolicyProof.gate(of: policy)
            else { continue }
            name.policy = gate.number
            used.insert(name)
        }
        for index in keybag.sets.indices {
            let tag = DeviceKey.setTag(of: keybag.sets[index].device)
            let newest = keybag
            keybag.sets[index].keys.removeAll { key in
                key.version != newest.newestVersion(of: key.policy, setTag: tag)
                    && !used.contains(
                        KeyRing.ClassName(policy: key.policy, setTag: tag, version: key.version))
            }
        }
    }

    /// Wraps this device's set under the vault's root key, with new versions, when another device gave the
    /// vault a new one. A failure does not refuse the unlock: the next unlock tries again.
    func renewOwnSet(_ session: VaultSession) throws(TokenStorageError) {
        // Checks the keybag that the unlock found. There is rarely anything to do.
        guard state.withLock({ $0.keybag }).sets.contains(where: { $0.olderRoots != nil }) else { return }
        guard location.readOnlyReason == nil, try !isCopy() else { return }
        let before = try currentKeybag(session)
        guard session.ring.roots?.all != nil, let store = secretStore else { return }
        let secrets = try store.load()
        func isBehind(_ set: Keybag.ClassSet) -> Bool {
            set.device == secrets.device?.identifier && set.olderRoots != nil
        }
        guard let set = before.sets.first(where: isBehind) else { return }
        let roots = try heldRoots(session)
        // Without the passcode root key its class stays: an unlock with the passphrase takes the step.
        guard roots.passcode != nil || !set.keys.contains(where: \.isPasscodeClass) else { return }
        func renew(droppingFormerRoots: Bool) throws(TokenStorageError) {
            let held = session.ring.held
            try replaceKeybag(session, roots: roots, droppingFormerRoots: droppingFormerRoots) {
                (keybag) throws(TokenStorageError) in
                let vault = keybag.vault
                for index in keybag.sets.indices where isBehind(keybag.sets[index]) {
                    let set = keybag.sets[index]
                    keybag.sets[index] = try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                        try KeybagKeys.renewed(set, held: held, vault: vault, roots: roots, secrets: secrets)
                    }
                }
            }
        }
        do throws(TokenStorageError) {
            try renew(droppingFormerRoots: false)
        } catch {
            guard error.reason == .slots(.keysFull) else { throw error }
            _ = try makeRoomForKeys(session)
            try renew(droppingFormerRoots: true)
        }
    }

    /// Seals the items again that are under earlier keys which are held, and removes the class keys that no item
    /// needs. Each key rotation adds a version of each class, and a device that only stores never removes the
    /// earlier ones. Returns the number of damaged replaced values, which are gone.
    private func makeRoomForKeys(_ session: VaultSession) throws(TokenStorageError) -> Int {
        var damagedValues = 0
        let keybag = try currentKeybag(session)
        let hasEarlier = try session.log.entries().0.contains { _, entry in
            let newest = keybag.newestVersion(of: entry.policy, setTag: entry.setTag) ?? 0
            let access = session.ring.access(
                policy: entry.policy, setTag: entry.setTag, version: entry.keyVersion)
            if entry.keyVersion < newest, case .keys = access { return true }
            return false
        }
        if hasEarlier {
            damagedValues = try session.queue.alone { () throws(TokenStorageError) in
                try session.log.compact(progress: nil, resealing: session.resealing()).damagedValues
            }
        }
        try removeUnusedKeys(session)
        return damagedValues
    }
}

extension Keybag {
    /// Whether a class has more keys than its newest.
    var hasSeveralVersions: Bool {
        sets.contains { set in Set(set.keys.map(\.policy)).count < set.keys.count }
    }
}
