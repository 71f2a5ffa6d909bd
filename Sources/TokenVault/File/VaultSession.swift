internal import Synchronization
internal import SystemPackage
internal import TokenVaultCrypto
internal import TokenVaultPlatform

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// A vault that was unlocked at least once: its keys, its log, and the items between the two.
final class VaultSession: Sendable {
    let ring: KeyRing
    let log: VaultLog
    let queue: CommitQueue
    let hub: ChangeHub
    let sealer: ItemSealer
    let announcer: ChangeAnnouncer
    let clock: @Sendable () -> Date
    private let store: Mutex<StateStore?>
    /// The device key's path, for messages.
    private let deviceKeyPath: String?

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
        let sealer = ItemSealer(vault: ring.vault)
        self.sealer = sealer
        let announcer = ChangeAnnouncer(ring: ring, sealer: sealer, hub: hub)
        self.announcer = announcer
        log = try VaultLog(
            location: isCopy ? location.withoutState() : location, file: file,
            codec: FrameCodec(vault: ring.vault, keys: ring.log),
            lockTimeout: configuration.lockLimit, tailBound: configuration.tailBound,
            announcer: announcer)
        if isCopy { log.broken.withLock { $0 = .file(.duplicateVault, underlying: "a copy is only read") } }
        queue = CommitQueue(log: log)
    }

    /// The policy of an item that names none. Never a weaker one because this device is not enrolled.
    var defaultPolicy: AccessPolicy {
        let facts = ring.facts
        return facts.isEnrolled || facts.hasDevices ? .whenUnlockedThisDeviceOnly : .whenUnlocked
    }

    /// Says where this device's keys are from now on.
    func use(_ store: StateStore) { self.store.withLock { $0 = store } }

    /// Takes the keys of the keybag that is in use, when another process has changed it. While locked
    /// the roots for that are not held, and what depends on passphrases stays unanswered. When the vault
    /// got a new root, what is held is no longer the vault's: it is locked until the next unlock.
    func refreshKeys() throws(TokenStorageError) {
        guard log.keybagRecord.generation != ring.facts.keybagGeneration, !ring.changesRoot else { return }
        let (locks, replacements) = (ring.locks, ring.replacements)
        let facts = ring.facts
        let copy = try log.currentKeybagCopy(in: log.state.withLock { $0 })
        let keybag: Keybag
        do { keybag = try Keybag(decoding: copy) } catch { throw .file(.corrupt) }
        guard let roots = ring.roots, !facts.isStale else {
            ring.markStale(keybag, unlessReplacedSince: replacements)
            return
        }
        do throws(KeybagKeys.Failure) {
            try KeybagKeys.check(keybag, roots: roots)
        } catch {
            // Only who holds the log key can name a copy there: another root, or a forgery, which the next unlock
            // tells apart.
            ring.loseRoot(keybag, unlessReplacedSince: replacements)
            return
        }
        let secrets = try store.withLock { $0 }?.load() ?? KeybagKeys.DeviceSecrets()
        let fresh: KeyRing
        do throws(TokenStorageError) {
            fresh = try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                try KeybagKeys.ring(
                    of: keybag, slot: facts.slot, roots: try roots.copied(), secrets: secrets)
            }
        } catch {
            // Wiped under our hands: by a lock, or since newer keys are there already.
            guard ring.locks == locks, ring.replacements == replacements else { return }
            throw error
        }
        ring.replace(with: fresh, unlessLockedSince: locks, unlessReplacedSince: replacements)
    }

    // MARK: - Reading

    func secret(service: String, key: TokenKey) throws(TokenStorageError) -> Secret? {
        try read(try log.codec.item(service: service, key: key), part: { $0.bodyRange }) {
            (bytes, entry, item, keys) throws(TokenStorageError) in
            try sealer.openBody(
                bytes, in: 0..<bytes.count, of: item, generation: entry.generation, keys: keys)
        }
    }

    func metadata(service: String, key: TokenKey) throws(TokenStorageError) -> TokenMetadata? {
        try read(try log.codec.item(service: service, key: key), part: { $0.metadataRange }) {
            (bytes, entry, item, keys) throws(TokenStorageError) in
            try sealer.openMetadata(
                bytes, in: 0..<bytes.count, of: item, generation: entry.generation, keys: keys)
        }
    }

    func item(service: String, key: TokenKey) throws(TokenStorageError) -> TokenItem? {
        try item(try log.codec.item(service: service, key: key))
    }

    /// The item whose name has this digest, whatever its service.
    func item(_ identifier: ItemIdentifier) throws(TokenStorageError) -> TokenItem? {
        try read(identifier, part: { $0.contentRange }) {
            (bytes, entry, item, keys) throws(TokenStorageError) in
            let split = Int(entry.metadataLength)
            guard bytes.count == entry.contentLength,
                let metadata = try sealer.openMetadata(
                    bytes, in: 0..<split, of: item, generation: entry.generation, keys: keys),
                let secret = try sealer.openBody(
                    bytes, in: split..<bytes.count, of: item, generation: entry.generation, keys: keys)
            else { return nil }
            return TokenItem(metadata: metadata, secret: secret)
        }
    }

    /// Finds an item and opens a part of it. Bytes that do not open may have been erased or moved since
    /// the look-up: only the same place failing twice is damage.
    private func read<Value>(
        _ item: ItemIdentifier, part: (IndexEntry) -> Range<Int>,
        open: ([UInt8], IndexEntry, ItemIdentifier, ClassKeys) throws(TokenStorageError) -> Value?
    ) throws(TokenStorageError) -> Value? {
        var failed: IndexEntry?
        while true {
            guard let (entry, file) = try log.entry(for: item) else { return nil }
            try refreshKeys()
            let replacements = ring.replacements
            do throws(TokenStorageError) {
                guard let keys = try keys(toRead: entry) else { return nil }
                let bytes = try log.read(part(entry), from: file)
                if let value = try open(bytes, entry, item, keys) { return value }
            } catch {
                guard try isOvertaken(error.code, item, entry, since: replacements) else { throw error }
                continue
            }
            if let failed, failed.offset == entry.offset, failed.generation == entry.generation {
                throw .damage(at: entry.offset, "a damaged item")
            }
            failed = entry
            try log.reloadIfReplaced()
        }
    }

    /// Whether the keys of `entry` were replaced, or the item sealed under newer ones, after they were looked up.
    private func isOvertaken(
        _ code: TokenStorageError.Code, _ item: ItemIdentifier, _ entry: IndexEntry, since replacements: Int
    ) throws(TokenStorageError) -> Bool {
        switch code {
        case .locked: return ring.replacements != replacements
        case .unsupportedFormat:
            guard let (now, _) = try log.entry(for: item) else { return true }
            return now.keyVersion != entry.keyVersion
        default: return false
        }
    }

    /// The keys that open an item; `nil` when they were destroyed and the item with them.
    func keys(toRead entry: IndexEntry) throws(TokenStorageError) -> ClassKeys? {
        try keys(of: ring.access(policy: entry.policy, setTag: entry.setTag, version: entry.keyVersion))
    }

    /// The keys; `nil` when they were destroyed. Throws why they are not held.
    func keys(of access: KeyRing.Access) throws(TokenStorageError) -> ClassKeys? {
        do throws(TokenStorageError) {
            return try access.keys()
        } catch {
            if error.code == .locked { throw ring.lockedError }
            guard error.code == .wrongDevice, ring.facts.deviceTag == nil else { throw error }
            var error = error
            error.underlying =
                deviceKeyPath.map { "no device key at \($0)" } ?? "no state directory was given"
            throw error
        }
    }

    /// The items of a service, or of all, with the number that cannot be shown.
    func list(service: String?, query: TokenQuery) throws(TokenStorageError) -> TokenListing {
        while true {
            let replacements = ring.replacements
            do throws(TokenStorageError) {
                if let listing = try listing(service: service, query: query) { return listing }
            } catch {
                guard error.code == .locked, ring.replacements != replacements else { throw error }
            }
        }
    }

    /// The items; `nil` when they were sealed under newer keys meanwhile.
    private func listing(
        service: String?, query: TokenQuery
    ) throws(TokenStorageError) -> TokenListing? {
        let tag: UInt64? = if let service { try log.codec.tag(ofService: service) } else { nil }
        let (entries, file) = try log.entries()
        try refreshKeys()
        var listing = TokenListing(items: [])
        for (item, entry) in entries where tag == nil || entry.serviceTag == tag {
            switch ring.access(policy: entry.policy, setTag: entry.setTag, version: entry.keyVersion) {
            case .destroyed: continue
            case .locked: listing.hide(.locked)
            case .wrongDevice: listing.hide(.wrongDevice)
            case .notPermitted: listing.hide(.notPermitted)
            case .unsupported:
                if try isOvertaken(.unsupportedFormat, item, entry, since: 0) { return nil }
                listing.hide(.unsupportedFormat)
            case .keys(let keys):
                let bytes = try log.read(entry.metadataRange, from: file)
                let opened = try sealer.openMetadata(
                    bytes, in: 0..<bytes.count, of: item, generation: entry.generation, keys: keys)
                guard let metadata = opened else {
                    // Deleted and erased since the list was taken, or damaged: a single read tells.
                    if let (now, _) = try log.entry(for: item), now.generation == entry.generation {
                        throw .damage(at: entry.offset, "a damaged item")
                    }
                    continue
                }
                if query.matches(metadata) { listing.items.append(metadata) }
            }
        }
        listing.items.sort { left, right in
            let services = (TokenKey(left.service), TokenKey(right.service))
            return services.0 == services.1 ? left.key < right.key : services.0 < services.1
        }
        return listing
    }

    // MARK: - Writing

    /// What a commit makes of the log as it is when its turn comes.
    func preparation(
        service: String, changes: [TokenChange], existed: CommitFacts
    ) -> @Sendable (LogView) throws(TokenStorageError) -> [FrameDraft] {
        { [self] (view) throws(TokenStorageError) in
            try refreshKeys()
            var planner = CommitPlanner(session: self, service: service, view: view, now: clock())
            for change in changes { try planner.add(change) }
            existed.set(planner.existed)
            return planner.drafts
        }
    }

    /// Deletes all items of a service that are there when the turn comes.
    func deletionOfAll(
        service: String, existed: CommitFacts
    ) -> @Sendable (LogView) throws(TokenStorageError) -> [FrameDraft] {
        { [self] (view) throws(TokenStorageError) in
            try refreshKeys()
            var planner = CommitPlanner(session: self, service: service, view: view, now: clock())
            let tag = try log.codec.tag(ofService: service)
            for (item, found) in try view.items(where: { $0.serviceTag == tag }) {
                try planner.delete(item, found)
            }
            existed.set([Bool](repeating: true, count: planner.drafts.count))
            return planner.drafts
        }
    }

    /// Removes items whose class keys were destroyed, with the last passphrase or with a device. Which these are
    /// only the keybag in use says: items of a class that came since the keys were read are not among them.
    func removeDestroyedItems() throws(TokenStorageError) {
        try log.withFreshState { _ in }
        try refreshKeys()
        // A look first: most unlocks find none, and a reader should not wait for writers.
        let mayBeAny = try log.withFreshState { [self] state in state.index.mayHave(isDestroyed) }
        guard mayBeAny else { return }
        _ = try queue.commit { [self] (view) throws(TokenStorageError) in
            // Others may have been at it since; from here on nobody is.
            try refreshKeys()
            guard log.keybagRecord.generation == ring.facts.keybagGeneration else { return [] }
            var drafts: [FrameDraft] = []
            let destroyed = try view.items { isDestroyed($0.policy, $0.setTag, $0.keyVersion) }
            for (item, found) in destroyed {
                drafts.append(
                    FrameDraft(
                        type: .deletion, policy: found.policy, keyVersion: found.keyVersion, item: item,
                        serviceTag: found.serviceTag, setTag: found.setTag))
            }
            return drafts
        }
    }

    /// Whether the keys of a class were destroyed.
    private func isDestroyed(_ policy: UInt8, _ setTag: UInt64, _ keyVersion: UInt32) -> Bool {
        if case .destroyed = ring.access(policy: policy, setTag: setTag, version: keyVersion) { return true }
        return false
    }
}

/// What a commit found, told by the thread that wrote it.
final class CommitFacts: Sendable {
    private let value = Mutex<[Bool]>([])
    func set(_ existed: [Bool]) { value.withLock { $0 = existed } }
    var existed: [Bool] { value.withLock { $0 } }
}

extension IndexEntry {
    var contentRange: Range<Int> { contentStart..<contentStart + contentLength }
}

extension TokenListing {
    fileprivate mutating func hide(_ reason: TokenStorageError.Code) {
        hidden += 1
        hiddenReasons[reason, default: 0] += 1
    }
}

extension KeyRing.Access {
    /// The keys; `nil` when they were destroyed. Throws why they are not held.
    func keys() throws(TokenStorageError) -> ClassKeys? {
        switch self {
        case .keys(let keys): return keys
        case .destroyed: return nil
        case .locked: throw .file(.locked)
        case .wrongDevice: throw .file(.wrongDevice)
        case .notPermitted:
            throw .file(.notPermitted, advice: "unlock with a passphrase, or another slot that leads to it")
        case .unsupported: throw .file(.unsupportedFormat, underlying: "an unknown class of keys")
        }
    }
}
