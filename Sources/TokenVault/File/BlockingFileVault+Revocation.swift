internal import Synchronization
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// What came of giving a vault a new root.
public struct RevocationReport: Sendable {
    /// The slots that are gone.
    public var removed: [VaultSlot]
    /// Items that were sealed anew.
    public var resealed: Int
    /// Items that still open with older keys: another device's, or, when ``deferredReason`` says so, any.
    public var remaining: Int
    /// Why sealing anew was put off, on a full disk say; `nil` when it was done. The revocation holds for what
    /// is written from now on, and ``BlockingFileVault/compact(progress:)`` makes up for it.
    public var deferredReason: TokenStorageError.Code?
}

// A new root: whoever has an old copy of the file and what opened it reads nothing that is written from then
// on, and once the items are sealed anew, nothing of the new file.
extension BlockingFileVault {
    /// Gives the vault a new root and new class keys, without the slots `ids`, and seals the items anew.
    ///
    /// A slot leads to the root through a key that only its own passphrase or key file gives: `methods` are what
    /// opens the slots that stay, that of the unlock among them. A slot that none of them opens is an error,
    /// or removed with `droppingOthers`. The keybag changes first, durably; from then on other processes that
    /// have the vault open are locked out until they unlock again. Then a compaction seals every item anew whose
    /// keys are held; `progress` gets items done and in all. Items of other devices stay under their own keys until
    /// that device opens the vault.
    ///
    /// The names of items can still be guessed and confirmed, and their number and sizes seen, by one who knew
    /// the old root: the log keeps its key.
    ///
    /// The vault must be unlocked (`locked`) by a slot that opens everything (`notPermitted`). Throws
    /// `slotNotFound`, `lastSlot`, `notPermitted` for a slot that would be lost, `conflict` when the slots changed
    /// meanwhile.
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

    /// Replaces the passphrase `current` by `new` and gives the vault a new root, so that old copies of the file
    /// with the old passphrase open nothing that is written from now on. `methods` are what opens the other slots
    /// that stay; the rest is as for ``rotateKeys(keeping:removing:droppingOthers:progress:)``. Throws as that, and
    /// `wrongPassphrase`, `invalidArgument` for an empty passphrase.
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

    /// Without `isResealing` it stops where a crash might, between the new keybag and the compaction.
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
        let before = try currentKeybag(session)
        if isResealing {
            // Without the new file that the items move to, only half of it would be done.
            try HardLinks(location: location).requireNone(of: session.log.state.withLock { $0.file })
        }
        var change = RootChange(
            before: before, cost: try configuration.keyDerivationCost.checked(),
            created: configuration.clock(), limit: configuration.derivationLimit)
        try change.choose(methods, removing: ids, droppingOthers: droppingOthers)
        let secrets = try secretStore?.load() ?? KeybagKeys.DeviceSecrets()
        try change.derive(from: held, slot: session.ring.facts.slot, secrets: secrets)
        guard let fresh = change.fresh else { throw .file(.internalError) }
        let prepared = change
        let losesPasscode = before.hasPassphrase && fresh.passcode == nil
        var isPepperGone = false
        do throws(TokenStorageError) {
            // The passphrase that was given to carry its slot along does not make this session lead to more.
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
                keybag = prepared.after
            }
        } catch {
            guard isPepperGone else { throw error }
            throw .file(.outcomeUnknown, .passcodeItemsDeleted(until: .keyRotation, error.reason))
        }
        prepared.wipe()
        if losesPasscode { try session.removeDestroyedItems() }
        var report = RevocationReport(removed: prepared.removed, resealed: 0, remaining: 0)
        if isResealing { reseal(session, &report, progress: progress) }
        report.remaining = try itemsUnderOlderKeys(session)
        return report
    }

    private func reseal(
        _ session: VaultSession, _ report: inout RevocationReport, progress: ((Int, Int) -> Void)?
    ) {
        let before = (try? itemsUnderOlderKeys(session)) ?? 0
        do throws(TokenStorageError) {
            _ = try session.queue.alone { () throws(TokenStorageError) in
                try session.log.compact(progress: progress, resealing: session.resealing())
            }
            report.resealed = before - (try itemsUnderOlderKeys(session))
            try removeUnusedKeys(session)
        } catch {
            report.deferredReason = error.code
        }
    }

    /// How many items are sealed under keys that are not the newest of their class, or under a set whose device
    /// has not taken the new root yet.
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
        guard session.ring.roots?.all != nil, try currentKeybag(session).hasSeveralVersions else { return }
        let roots = try heldRoots(session)
        try replaceKeybag(session, roots: roots) { (keybag) throws(TokenStorageError) in
            var used: Set<KeyRing.ClassName> = []
            for entry in try session.log.lastingEntries() {
                var name = KeyRing.ClassName(
                    policy: entry.policy, setTag: entry.setTag, version: entry.keyVersion)
                used.insert(name)
                // What proves whose choice the item's policy is.
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
    }

    /// Wraps this device's set under the vault's root, with new versions, when another device gave the vault a new
    /// one. Failing is no reason to refuse the unlock: it is tried again by the next.
    func renewOwnSet(_ session: VaultSession) throws(TokenStorageError) {
        // What the unlock found; hardly ever is there anything to do.
        guard state.withLock({ $0.keybag }).sets.contains(where: { $0.olderRoots != nil }) else { return }
        let before = try currentKeybag(session)
        guard session.ring.roots?.all != nil, let store = secretStore else { return }
        let secrets = try store.load()
        guard before.sets.contains(where: { $0.device == secrets.device?.identifier && $0.olderRoots != nil })
        else { return }
        let roots = try heldRoots(session)
        // Without the passcode root its class stays where it is: whoever types the passphrase takes the step.
        guard roots.passcode != nil || !before.hasPassphrase else { return }
        let held = session.ring.held
        try replaceKeybag(session, roots: roots) { (keybag) throws(TokenStorageError) in
            let vault = keybag.vault
            for index in keybag.sets.indices
            where keybag.sets[index].device == secrets.device?.identifier
                && keybag.sets[index].olderRoots != nil
            {
                let set = keybag.sets[index]
                keybag.sets[index] = try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                    try KeybagKeys.renewed(set, held: held, vault: vault, roots: roots, secrets: secrets)
                }
            }
        }
    }
}

extension Keybag {
    /// Whether a class has more keys than its newest.
    var hasSeveralVersions: Bool {
        sets.contains { set in Set(set.keys.map(\.policy)).count < set.keys.count }
    }
}
