internal import Synchronization
internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// A vault that was unlocked at least once: its keys, its log, and the items between the two.
final class VaultSession: KeybagOpener {
    let ring: KeyRing
    let log: VaultLog
    let queue: CommitQueue
    let hub: ChangeHub
    let announcer: ChangeAnnouncer
    let clock: @Sendable () -> Date
    private let store: Mutex<StateStore?>
    /// The device key's path, for messages.
    let deviceKeyPath: String?

    init(
        ring: KeyRing, location: VaultLocation, file: any DiskFile, store: StateStore?,
        configuration: FileVaultConfiguration, hub: ChangeHub, isCopy: Bool = false
    ) throws(TokenStorageError) {
        self.ring = ring
        self.hub = hub
        clock = configuration.clock
        self.store = Mutex(store)
        deviceKeyPath = configuration.stateDirectory.map {
            $0.appending(ring.vault.hexadecimal + ".device").string
        }
        let announcer = ChangeAnnouncer(ring: ring, hub: hub)
        self.announcer = announcer
        log = try VaultLog(
            location: isCopy ? location.withoutState() : location, file: file, ring: ring,
            lockTimeout: configuration.lockLimit, tailBound: configuration.tailBound,
            announcer: announcer)
        if isCopy {
            log.stop.withLock { $0 = WritingStop(.file(.duplicateVault, .ancestry(.readOnlyCopy))) }
        }
        queue = CommitQueue(log: log)
        log.keybagOpener.withLock { $0.opener = self }
    }

    /// The policy of an item that names none; never a weaker policy because this device is not enrolled.
    var defaultPolicy: AccessPolicy {
        let facts = ring.facts
        return facts.isEnrolled || facts.hasDevices ? .whenUnlockedThisDeviceOnly : .whenUnlocked
    }

    /// Sets the store of this device's keys.
    func use(_ store: StateStore) { self.store.withLock { $0 = store } }

    /// Takes the keys of the keybag that is in use, when another process has changed it. While locked, the session does
    /// not hold the roots for that. The session then only checks that the keybag is under the same after-first-unlock
    /// root, and reads that depend on passphrases wait.
    ///
    /// When the vault got a new root key, or a keybag that this device must not accept, the held keys are no longer the
    /// vault's. The session is then locked until the next unlock, which tells the two apart. Throws `locked` then.
    func openKeybagInUse() throws(TokenStorageError) {
        guard !log.isChecked(log.keybagRecord) else { return }
        // One lock is enough: every lock revokes the values that are being read.
        if ring.facts.hasLostRoot { throw ring.lockedError }
        let (locks, replacements) = (ring.locks, ring.replacements)
        let copy = try log.readKeybagInUse()
        guard !log.isChecked(copy.record) else { return }
        let succession: Succession?
        let fresh: KeyRing?
        do throws(TokenStorageError) {
            succession = try self.succession(of: copy.keybag)
            fresh = succession == nil ? nil : try open(copy.keybag)
        } catch {
            // The keys were wiped meanwhile, by a lock or because newer keys are there already.
            guard ring.locks == locks, ring.replacements == replacements else { return }
            throw error
        }
        guard let succession else { return try loseRoot(copy.keybag, since: replacements) }
        do throws(TokenStorageError) {
            guard try log.noteOpening(under: fresh?.facts.succession ?? succession, of: copy.record) else {
                fresh?.wipeEverything()
                return
            }
        } catch {
            fresh?.wipeEverything()
            switch error.reason {
            // A key rotation replaced the held root: the next unlock reports it.
            case .ancestry(.unrelatedKeys): return try loseRoot(copy.keybag, since: replacements)
            // The next look finds the keys that replaced these.
            case .changedMeanwhile(.keys): return
            default: throw error
            }
        }
        if let fresh {
            fresh.note(copy.record)
            ring.replace(with: fresh, unlessLockedSince: locks, unlessReplacedSince: replacements)
        } else {
            ring.markStale(copy.keybag, copy.record, unlessReplacedSince: replacements)
        }
    }

    /// Does the same, where a locked session is nothing to report. Returns whether the keys of the keybag in use were checked.
    func followKeybag() throws(TokenStorageError) -> Bool {
        do throws(TokenStorageError) {
            try log.checkKeybag()
            return true
        } catch {
            guard error.code == .locked else { throw error }
            return false
        }
    }

    /// Returns the names of the held roots; `nil` where `keybag` is not signed under these. Only a holder of the log key
    /// can name such a keybag: another root key, or a forgery.
    private func succession(of keybag: Keybag) throws(TokenStorageError) -> Succession? {
        if let roots = ring.roots {
            return try KeybagKeys.isAuthentic(keybag, under: roots) ? ring.facts.succession : nil
        }
        guard let holderCode = ring.holderCode else { throw ring.lockedError }
        guard try KeybagKeys.isAuthentic(keybag, underHolderOf: holderCode) else { return nil }
        return Succession(all: [], holder: ring.facts.succession.holder)
    }

    /// Returns the keys of a keybag that is under the held roots; `nil` while locked.
    private func open(_ keybag: Keybag) throws(TokenStorageError) -> KeyRing? {
        guard let roots = ring.roots else { return nil }
        let secrets = try store.withLock { $0 }?.load() ?? KeybagKeys.DeviceSecrets()
        let slot = ring.facts.slot
        return try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
            try KeybagKeys.ring(of: keybag, slot: slot, roots: try roots.copied(), secrets: secrets)
        }
    }

    private func loseRoot(_ keybag: Keybag, since replacements: Int) throws(TokenStorageError) {
        ring.loseRoot(keybag, unlessReplacedSince: replacements)
        // Otherwise newer keys took the place of those that were compared.
        if ring.facts.hasLostRoot { throw ring.lockedError }
    }
}

// After a key rotation: items sealed under older class keys are sealed under the newest.
extension VaultSession {
    /// Returns a function that seals an item again for compaction, under its own generation. The function
    /// returns `nil` when the item's keys are the newest or not held.
    func resealing() -> VaultLog.Resealing {
        { [self] (item, entry, content) throws(TokenStorageError) in
            guard
                case .keys(let old) = ring.access(
                    policy: entry.policy, setTag: entry.setTag, version: entry.keyVersion),
                case .keys(let new) = ring.accessForWriting(old.policy), new.setTag == old.setTag,
                new.version > old.version
            else { return nil }
            let split = Int(entry.metadataLength)
            guard
                let stored = try ItemSealer.openMetadata(
                    content, in: 0..<split, of: item, generation: entry.generation, valueTag: entry.valueTag,
                    keys: old),
                let secret = try ItemSealer.openBody(
                    content, in: split..<content.count, of: item, generation: entry.generation,
                    valueTag: entry.valueTag, keys: old)
            else { throw .damage(at: entry.offset, .item) }
            let origin = ring.policyOrigin(of: stored, item, under: old)
            // Without the root key the proof cannot be renewed: the next session with the root key seals the
            // item.
            if origin == .unknown { return nil }
            var supplies = ItemSealer.Supplies(for: 1)
            return try ItemSealer.item(
                item,
                metadata: ItemCoding.metadata(
                    StoredMetadata(
                        metadata: stored.metadata,
                        policyProof: origin == .owner ? ring.policyProof(of: item, under: new) : nil)),
                secret: secret, keys: new, serviceTag: entry.serviceTag, generation: entry.generation,
                with: &supplies)
        }
    }
}
