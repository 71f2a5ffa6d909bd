internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The items of a merged vault: the source of each, and the items that are lost or kept twice.
struct MergedItems {
    /// The source of an item of the new file.
    private struct Source {
        var item: ItemIdentifier
        var entry: IndexEntry
        var isTheirs = false
        /// Whether the item is sealed under a generation of the merge, so that nothing takes it for either
        /// file's value.
        var isSealedAgain = false
        /// The key to store the item under; `nil` for its own key.
        var key: TokenKey?
    }

    private let ours: CheckedCopy
    private let theirs: CheckedCopy
    private let generation: UInt64
    private var sources: [Source] = []
    private(set) var keybag: Keybag
    var report = MergeReport()

    /// Decides on every item of both files. Opens the items that both have changed. Throws `corrupt` where
    /// such an item is damaged.
    init(
        _ plan: MergePlan, ours: CheckedCopy, theirs: CheckedCopy, generation: UInt64
    ) throws(TokenStorageError) {
        self.ours = ours
        self.theirs = theirs
        self.generation = generation
        keybag = ours.keybag
        try takeDevices(plan)
        var (ourScanner, theirScanner) = (ours.scanner(), theirs.scanner())
        for (item, entry) in ours.items {
            let their = theirs.entry(of: item)
            switch plan.choice(ours: entry, theirs: their, isReadable: ours.opens(entry)) {
            case .ours: keep(item, entry, isNew: entry.generation > plan.fork.sequence)
            case .theirs(let their):
                if !take(item, their) { keep(item, entry, isNew: false) }
            case .both(_, let their):
                keep(item, entry, isNew: true)
                try keepTwice(item, entry, their, &ourScanner, &theirScanner)
            case .deleted: report.deleted += 1
            }
        }
        for (item, entry) in theirs.items where ours.entry(of: item) == nil {
            guard case .theirs = plan.choice(ours: nil, theirs: entry, isReadable: theirs.opens(entry)) else {
                continue
            }
            _ = take(item, entry)
        }
        report.items = sources.count
    }

    private mutating func keep(_ item: ItemIdentifier, _ entry: IndexEntry, isNew: Bool) {
        sources.append(
            Source(item: item, entry: entry, isSealedAgain: isNew && ours.opens(entry) && canSeal(entry)))
    }

    /// Takes an item of the other file; returns false where neither this device nor the new keybag has keys
    /// for it.
    private mutating func take(_ item: ItemIdentifier, _ entry: IndexEntry) -> Bool {
        let isSealedAgain = theirs.opens(entry) && canSeal(entry)
        guard isSealedAgain || hasSameKeys(entry) else {
            report.remaining += 1
            return false
        }
        sources.append(Source(item: item, entry: entry, isTheirs: true, isSealedAgain: isSealedAgain))
        report.taken += 1
        return true
    }

    /// Keeps the other file's value of an item under another key, unless both values are the same.
    private mutating func keepTwice(
        _ item: ItemIdentifier, _ our: IndexEntry, _ their: IndexEntry, _ ourScanner: inout LogScanner,
        _ theirScanner: inout LogScanner
    ) throws(TokenStorageError) {
        guard let mine = try ours.open(item, our, &ourScanner),
            let other = try theirs.open(item, their, &theirScanner), canSeal(their)
        else {
            report.remaining += 1
            return
        }
        if mine.isSame(as: other) { return }
        let key = try freeKey(for: other)
        sources.append(Source(item: item, entry: their, isTheirs: true, isSealedAgain: true, key: key))
        report.conflicts.append(
            MergeReport.Conflict(service: other.metadata.service, key: other.metadata.key, keptAs: key))
    }

    /// Returns a key that neither file has, made from that of `item`.
    private func freeKey(for item: TokenItem) throws(TokenStorageError) -> TokenKey {
        var number = 1
        while true {
            let end = " (conflict \(generation)\(number == 1 ? "" : ", \(number)"))"
            var name = item.metadata.key.name
            while name.utf8.count + end.utf8.count > TokenKey.maximumLength { name.removeLast() }
            let key = TokenKey(name + end)
            let identifier = try ours.codec.item(service: item.metadata.service, key: key)
            if ours.entry(of: identifier) == nil, theirs.entry(of: identifier) == nil,
                !report.conflicts.contains(where: { $0.keptAs == key && $0.service == item.metadata.service })
            {
                return key
            }
            number += 1
        }
    }

    // MARK: - Keys

    /// Returns whether an item of this policy can be sealed with the keys of this file.
    private func canSeal(_ entry: IndexEntry) -> Bool {
        guard let policy = AccessPolicy(number: entry.policy),
            case .keys(let keys) = ours.ring.accessForWriting(policy)
        else { return false }
        // An item of another device stays that device's.
        return keys.setTag == entry.setTag
    }

    /// Returns whether the new keybag has the same keys that an item of the other file is sealed under.
    private func hasSameKeys(_ entry: IndexEntry) -> Bool {
        func key(in keybag: Keybag) -> Keybag.WrappedClass? {
            keybag.sets.first { DeviceKey.setTag(of: $0.device) == entry.setTag }?.keys.first {
                $0.policy == entry.policy && $0.version == entry.keyVersion
            }
        }
        guard let theirs = key(in: theirs.keybag) else { return false }
        return key(in: keybag) == theirs
    }

    /// Takes over the devices enrolled in the other file since. A device that has items from before was
    /// removed here.
    private mutating func takeDevices(_ plan: MergePlan) throws(TokenStorageError) {
        let known = Set(keybag.sets.map(\.device))
        let fresh = theirs.keybag.sets.filter { !known.contains($0.device) }
        guard !fresh.isEmpty else { return }
        let old = Set(theirs.items.filter { $0.1.generation <= plan.fork.sequence }.map(\.1.setTag))
        let hasSameRoot = (try? KeybagKeys.check(theirs.keybag, roots: ours.roots)) != nil
        for set in fresh where !old.contains(DeviceKey.setTag(of: set.device)) {
            let name = set.device.hexadecimal
            guard hasSameRoot, keybag.sets.count < Keybag.maximumSets else {
                report.notes.append("device \(name) of the copy is not in the vault: enrol it again")
                continue
            }
            keybag.sets.append(set)
            report.notes.append("device \(name) is in the vault now, as in the copy")
        }
    }

    // MARK: - Writing

    /// Writes all items; `progress` gets the items done and the total.
    func write(
        to builder: inout LogBuilder, progress: ((Int, Int) -> Void)?
    ) throws(TokenStorageError) {
        var (ourScanner, theirScanner) = (ours.scanner(), theirs.scanner())
        var supplies = ItemSealer.Supplies(for: sources.count)
        for (position, source) in sources.enumerated() {
            if position.isMultiple(of: 1_024) { progress?(position, sources.count) }
            if source.isTheirs {
                try write(source, of: theirs, &theirScanner, to: &builder, &supplies)
            } else {
                try write(source, of: ours, &ourScanner, to: &builder, &supplies)
            }
        }
        progress?(sources.count, sources.count)
    }

    private func write(
        _ source: Source, of copy: CheckedCopy, _ scanner: inout LogScanner, to builder: inout LogBuilder,
        _ supplies: inout ItemSealer.Supplies
    ) throws(TokenStorageError) {
        guard source.isSealedAgain else {
            return try builder.copy(
                IndexRecord(source.item, source.entry, .newest), from: &scanner)
        }
        guard let opened = try copy.open(source.item, source.entry, &scanner),
            let policy = AccessPolicy(number: source.entry.policy),
            case .keys(let keys) = ours.ring.accessForWriting(policy)
        else { throw .damage(at: source.entry.offset, .item) }
        var metadata = opened.metadata
        if let key = source.key { metadata.key = key }
        let item = try ours.codec.item(service: metadata.service, key: metadata.key)
        let draft = try ItemSealer(vault: copy.codec.vault).item(
            item,
            metadata: ItemCoding.metadata(
                StoredMetadata(
                    metadata: metadata,
                    policyProof: metadata.isPolicyFromLimitedSession
                        ? nil : ours.ring.policyProof(of: item, under: keys))),
            secret: opened.secret, keys: keys, serviceTag: source.entry.serviceTag, generation: generation,
            with: &supplies)
        try builder.append(draft, generation: generation)
    }
}
