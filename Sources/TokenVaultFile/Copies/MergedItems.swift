internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The items of a merged vault: the source of each, and the items that are lost or kept twice.
struct MergedItems {
    /// The source of an item of the new file.
    struct Source {
        var item: ItemIdentifier
        var entry: IndexEntry
        var isTheirs = false
        /// Whether the item is sealed again under the generation of the merge, since its own generation no
        /// longer tells which commit stored it.
        var isSealedAgain = false
        /// The tag of the commit that stored the value; zero where the generation tells it.
        var storedBy: UInt64 = 0
        /// The key to store the item under; `nil` for its own key.
        var key: TokenKey?

        /// An item of one of the files.
        struct Place: Hashable {
            var item: ItemIdentifier
            var isTheirs: Bool
        }

        var place: Place { Place(item: item, isTheirs: isTheirs) }
    }

    let plan: MergePlan
    let ours: CheckedCopy
    let theirs: CheckedCopy
    let generation: UInt64
    let hasSameRoot: Bool
    private(set) var sources: [Source] = []
    var keybag: Keybag {
        didSet { classes = KeybagClasses(keybag) }
    }
    /// The class keys of that keybag.
    private var classes: KeybagClasses
    /// Whether the new file has what the other file has, and nothing else.
    private(set) var isSameAsTheirs = true
    /// Whether the keys were rotated in the other file, which descends from this one. Only that file as it is
    /// can be the new one.
    var hasKeysOfTheirs = false
    /// The values of the other file that this merge had the keys for.
    private var taken: Set<Ancestry.LeftValue> = []
    /// The values of the other file that stay in it.
    private(set) var leftNow: Set<Ancestry.LeftValue> = []
    var report = MergeReport()
    /// The last number that a key of a conflict got. Keys that are cut to one beginning count together.
    private var conflictNumbers: [SettledConflicts.Name: Int] = [:]

    /// Decides on every item of both files. Opens the items that either has changed. Throws `corrupt` where
    /// such an item is damaged.
    init(
        _ plan: MergePlan, ours: CheckedCopy, theirs: CheckedCopy, knownRoots: RootNames, generation: UInt64
    ) throws(TokenStorageError) {
        self.plan = plan
        self.ours = ours
        self.theirs = theirs
        self.generation = generation
        keybag = ours.keybag
        classes = ours.classes
        hasSameRoot = try KeybagKeys.isAuthentic(theirs.keybag, under: ours.roots)
        try checkSlots(knownRoots)
        takeKeptValues()
        try takeDevices()
        var (ourScanner, theirScanner) = (ours.scanner(), theirs.scanner())
        var dropped = DroppedValues()
        let conflicts = try SettledConflicts(plan, ours: ours, theirs: theirs, canTake: canTake)
        for (item, entry) in ours.items {
            var our: MergePlan.Version? = try plan.ours.version(entry, &ourScanner)
            let their = try theirs.entry(of: item).map { (entry) throws(TokenStorageError) in
                try plan.theirs.version(entry, &theirScanner)
            }
            if let our, conflicts.needlessOfTheirs.contains(item) {
                dropped.dropTheirs(item, their)
                if conflicts.needlessOfOurs.contains(item) {
                    dropped.dropOurs(item, our)
                } else {
                    keep(item, our)
                }
                isSameAsTheirs = false
                continue
            }
            if conflicts.needlessOfOurs.contains(item) {
                dropped.dropOurs(item, our)
                our = nil
            }
            switch plan.choice(item, ours: our, theirs: their) {
            case .same(let our):
                if let their, !canKeep(our.entry) {
                    takeSame(item, their)
                } else {
                    keep(item, our)
                }
            case .ours(let our):
                keep(item, our)
                dropped.dropTheirs(item, their)
                isSameAsTheirs = false
            case .theirs(let their):
                if try take(item, their, &theirScanner) {
                    dropped.dropOurs(item, our)
                } else if let our {
                    keep(item, our)
                }
            case .both(let our, let their, let isSeen):
                try settle(
                    item, our, their, isSeen: isSeen, by: conflicts, &dropped, &ourScanner, &theirScanner)
                isSameAsTheirs = false
            case .deleted:
                dropped.dropTheirs(item, their)
                if our == nil { continue }
                dropped.dropOurs(item, our)
                report.deleted += 1
                if let stored = try ours.metadata(of: item, entry, &ourScanner) {
                    report.deletedNames.append(Self.name(of: stored))
                }
            }
        }
        for (item, entry) in theirs.items
        where ours.entry(of: item) == nil {
            let their = try plan.theirs.version(entry, &theirScanner)
            if conflicts.needlessOfTheirs.contains(item) {
                dropped.dropTheirs(item, their)
            } else if case .theirs = plan.choice(item, ours: nil, theirs: their) {
                _ = try take(item, their, &theirScanner)
            } else {
                dropped.dropTheirs(item, their)
                isSameAsTheirs = false
            }
        }
        try keepLost(dropped)
        keepUnread(dropped)
        report.items = sources.count
        let (mine, other) = (keybag, theirs.keybag)
        if report.remaining > 0 || mine.slots != other.slots || mine.nextSlot != other.nextSlot
            || Set(mine.sets) != Set(other.sets) || Set(mine.removedDevices) != Set(other.removedDevices)
            || mine.keptValues != other.keptValues
        {
            isSameAsTheirs = false
        }
    }

    private mutating func keep(_ item: ItemIdentifier, _ version: MergePlan.Version) {
        let entry = version.entry
        let isAmbiguous = plan.isAmbiguous(entry.generation)
        let needsNewKeys = !hasKeys(of: entry)
        sources.append(
            Source(
                item: item, entry: entry,
                isSealedAgain: (isAmbiguous || needsNewKeys) && ours.opens(entry) && canSeal(entry),
                storedBy: isAmbiguous || entry.isMerged ? version.storedBy ?? 0 : 0))
    }

    /// Takes an item of the other file; returns false where neither this device nor the new keybag has keys
    /// for it.
    private mutating func take(
        _ item: ItemIdentifier, _ version: MergePlan.Version, _ scanner: inout LogScanner
    ) throws(TokenStorageError) -> Bool {
        let entry = version.entry
        guard canTake(entry) else {
            leave(item, version)
            return false
        }
        addTheirs(item, version)
        report.taken += 1
        if let stored = try theirs.metadata(of: item, entry, &scanner) {
            report.takenNames.append(Self.name(of: stored))
        }
        return true
    }

    /// Takes the other file's form of a value that both files have: the new keybag has keys for that form only.
    private mutating func takeSame(_ item: ItemIdentifier, _ version: MergePlan.Version) {
        guard canTake(version.entry) else { return leave(item, version) }
        addTheirs(item, version)
    }

    private mutating func addTheirs(_ item: ItemIdentifier, _ version: MergePlan.Version) {
        taken.insert(version.asLeft(item))
        sources.append(
            Source(
                item: item, entry: version.entry, isTheirs: true,
                isSealedAgain: theirs.opens(version.entry) && canSeal(version.entry),
                storedBy: version.storedBy ?? 0))
    }

    /// Notes that a value of the other file stays in it.
    private mutating func leave(_ item: ItemIdentifier, _ version: MergePlan.Version) {
        report.remaining += 1
        leftNow.insert(version.asLeft(item))
    }

    /// Whether the new file has nothing that this file does not have.
    var isSameAsOurs: Bool {
        report.taken == 0 && report.deleted == 0 && report.conflicts.isEmpty
            && sources.count == ours.items.count && keybag == ours.keybag
    }

    /// The values that this merge and earlier ones, of either file, left in their copies. A value no longer
    /// counts once it is taken, or the other file has had it and replaced or deleted it.
    var left: Set<Ancestry.LeftValue> {
        func stillLeft(_ own: MergePlan.History, _ other: MergePlan.History) -> Set<Ancestry.LeftValue> {
            own.left.filter { other.left.contains($0) || !other.contains($0.storedBy) }
        }
        return stillLeft(plan.ours, plan.theirs).union(stillLeft(plan.theirs, plan.ours))
            .subtracting(taken).union(leftNow)
    }

    private static func name(of stored: StoredMetadata) -> MergeReport.Name {
        MergeReport.Name(service: stored.metadata.service, key: stored.metadata.key)
    }

    /// Decides about an item of which each file has a value that the other one lacks.
    private mutating func settle(
        _ item: ItemIdentifier, _ our: MergePlan.Version, _ their: MergePlan.Version, isSeen: Bool,
        by conflicts: SettledConflicts, _ dropped: inout DroppedValues, _ ourScanner: inout LogScanner,
        _ theirScanner: inout LogScanner
    ) throws(TokenStorageError) {
        if isSeen, conflicts.taken.contains(item) {
            guard try take(item, their, &theirScanner) else { return keep(item, our) }
            dropped.dropOurs(item, our)
        } else if isSeen, !theirs.opens(their.entry), canTake(their.entry),
            let mine = try ours.open(item, our.entry, &ourScanner), canSeal(our.entry)
        {
            // The value that this device cannot open cannot move to another key: its own moves. Left in its file,
            // that value would look like the newer one to the next merge.
            _ = try take(item, their, &theirScanner)
            dropped.displace(item, our, mine)
        } else {
            let isKept = conflicts.kept.contains(item)
            try keepTwice(item, our, their, isKept: isKept, &ourScanner, &theirScanner)
        }
    }

    /// Keeps this file's value of an item, and the other file's value under another key. Does not keep the
    /// other value when the two are the same, or when `isKept` says that an earlier merge kept it. Leaves the
    /// other value in its file where this device cannot open or seal the value.
    private mutating func keepTwice(
        _ item: ItemIdentifier, _ our: MergePlan.Version, _ their: MergePlan.Version, isKept: Bool,
        _ ourScanner: inout LogScanner, _ theirScanner: inout LogScanner
    ) throws(TokenStorageError) {
        keep(item, our)
        guard let other = try theirs.open(item, their.entry, &theirScanner), canSeal(their.entry) else {
            return leave(item, their)
        }
        taken.insert(their.asLeft(item))
        // A value that this device cannot open is another device's.
        let mine = try ours.open(item, our.entry, &ourScanner)
        if !isKept, !(mine?.isSame(as: other) ?? false) { try keepUnderAnotherKey(other, their.entry, item) }
    }

    /// Keeps the values that were displaced, or that both files have, and that the new file would have under no key.
    private mutating func keepLost(_ dropped: DroppedValues) throws(TokenStorageError) {
        // Created on first use: few merges look for such a value.
        var kept: Set<Source.Place>?
        let lost = try dropped.lost(of: ours, theirs) { item, isTheirs in
            let places = kept ?? Set(sources.map(\.place))
            kept = places
            return places.contains(Source.Place(item: item, isTheirs: isTheirs))
        }
        for value in lost {
            isSameAsTheirs = false
            if canSeal(value.version.entry) {
                try keepUnderAnotherKey(
                    value.opened, value.version.entry, value.item, isTheirs: value.isTheirs)
            } else {
                leave(value.item, value.version)
            }
        }
    }

    /// Keeps the values of other devices that both files may have, and that the new file would have under no key.
    private mutating func keepUnread(_ dropped: DroppedValues) {
        let unread = dropped.unread(of: ours, theirs)
        guard !unread.ours.isEmpty else { return }
        isSameAsTheirs = false
        let used = Set(sources.map(\.item))
        for (item, version) in unread.ours where !used.contains(item) && canKeep(version.entry) {
            keep(item, version)
            report.deleted -= 1
        }
        // A value whose item key is in use cannot move to another key without being opened. For other values,
        // the new keybag may have no keys.
        if unread.ours.contains(where: { used.contains($0.0) || !canKeep($0.1.entry) }) {
            for (item, version) in unread.theirs { leave(item, version) }
        }
    }

    private mutating func keepUnderAnotherKey(
        _ other: TokenItem, _ entry: IndexEntry, _ item: ItemIdentifier, isTheirs: Bool = true
    ) throws(TokenStorageError) {
        let key = try freeKey(for: other)
        sources.append(Source(item: item, entry: entry, isTheirs: isTheirs, isSealedAgain: true, key: key))
        report.conflicts.append(
            MergeReport.Conflict(
                service: other.metadata.service, key: other.metadata.key, keptAs: key,
                isVaultsValueMoved: !isTheirs))
    }

    /// Returns a key that neither file has, made from that of `item`.
    private mutating func freeKey(for item: TokenItem) throws(TokenStorageError) -> TokenKey {
        let original = SettledConflicts.Name(item.metadata)
        while true {
            let number = conflictNumbers[original, default: 0] + 1
            conflictNumbers[original] = number
            let end = SettledConflicts.ending(generation, number)
            var name = SettledConflicts.original(of: item.metadata.key).name
            while name.utf8.count + end.utf8.count > TokenKey.maximumLength {
                name.unicodeScalars.removeLast()
            }
            let key = TokenKey(name + end)
            let identifier = try ours.codec.item(service: item.metadata.service, key: key)
            if ours.entry(of: identifier) == nil, theirs.entry(of: identifier) == nil { return key }
        }
    }

    // MARK: - Keys

    /// Returns whether an item of the other file can be in the new one.
    func canTake(_ entry: IndexEntry) -> Bool {
        theirs.opens(entry) && canSeal(entry)
            || theirs.classes.hasSameKey(as: classes, under: .init(of: entry), hasSameRoot: hasSameRoot)
    }

    /// Returns whether this file's value of an item can be in the new one.
    func canKeep(_ entry: IndexEntry) -> Bool { hasKeys(of: entry) || ours.opens(entry) && canSeal(entry) }

    /// Returns whether the new keybag has the keys that an item of this file is sealed under.
    private func hasKeys(of entry: IndexEntry) -> Bool {
        guard AccessPolicy(number: entry.policy)?.isThisDeviceOnly == true else { return true }
        let name = KeyRing.ClassName(of: entry)
        // A key rotation in the other file, which descends from this one, has wrapped all keys again.
        return hasKeysOfTheirs
            ? classes.hasKey(name) : ours.classes.hasSameKey(as: classes, under: name, hasSameRoot: true)
    }

    private func canSeal(_ entry: IndexEntry) -> Bool { sealing(entry) != nil }

    /// Returns the newest keys of the new keybag for an item's policy and device, to seal the item again with.
    /// Returns `nil` where neither file's unlock method has them.
    func sealing(_ entry: IndexEntry) -> (ring: KeyRing, keys: ClassKeys)? {
        guard let policy = AccessPolicy(number: entry.policy) else { return nil }
        var newest: (ring: KeyRing, keys: ClassKeys)?
        for copy in [ours, theirs] {
            // An item of another device stays that device's.
            guard case .keys(let keys) = copy.ring.accessForWriting(policy), keys.setTag == entry.setTag,
                copy.classes.hasSameKey(as: classes, under: .init(of: keys), hasSameRoot: hasSameRoot),
                keys.version > newest?.keys.version ?? 0
            else { continue }
            newest = (copy.ring, keys)
        }
        return newest
    }
}
