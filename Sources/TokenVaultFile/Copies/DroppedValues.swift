internal import TokenVaultCore

/// The values that a merge takes from neither file, because each of them has seen the other's.
///
/// After a conflict, two files may have the same two values under exchanged keys. Where one of the keys is then
/// written again, each file seems to have replaced the value that the other one has there. A value that both files
/// have was deleted by neither, and has to stay.
struct DroppedValues {
    /// A value of one of the files.
    struct Value {
        var item: ItemIdentifier
        var version: MergePlan.Version
        /// The opened value, under the key that it had before any conflict.
        var opened: TokenItem
        /// Whether it is read from the other file.
        var isTheirs: Bool
    }

    private var displaced: [Value] = []
    private var ours: [(item: ItemIdentifier, version: MergePlan.Version)] = []
    private var theirs: [(item: ItemIdentifier, version: MergePlan.Version)] = []

    /// Notes that the new file does not have this file's value of an item.
    mutating func dropOurs(_ item: ItemIdentifier, _ version: MergePlan.Version?) {
        if let version { ours.append((item, version)) }
    }

    /// Notes that the new file does not have the other file's value of an item.
    mutating func dropTheirs(_ item: ItemIdentifier, _ version: MergePlan.Version?) {
        if let version { theirs.append((item, version)) }
    }

    /// Notes that this file's value of an item makes room for one that has to keep its key.
    mutating func displace(_ item: ItemIdentifier, _ version: MergePlan.Version, _ opened: TokenItem) {
        displaced.append(Value(item, version, opened, isTheirs: false))
    }

    /// Returns the values that the new file has under no key: displaced values, and values of the other file that this
    /// file has too. `isKept` says whether the new file has the value of an item of this file, or of the other one.
    /// Throws `corrupt` where an item is damaged.
    func lost(
        of our: CheckedCopy, _ their: CheckedCopy,
        isKept: (_ item: ItemIdentifier, _ isTheirs: Bool) -> Bool
    ) throws(TokenStorageError) -> [Value] {
        let isInBoth = !ours.isEmpty && !theirs.isEmpty
        guard isInBoth || !displaced.isEmpty else { return [] }
        var candidates = displaced
        if isInBoth {
            candidates += try inBoth(our, their)
        }
        var (ourCopies, theirCopies) = (SettledConflicts.Copies(in: our), SettledConflicts.Copies(in: their))
        var lost: [Value] = []
        for value in candidates where !lost.contains(where: { $0.isSame(as: value) }) {
            let ourPlaces = try places(of: value.opened, in: our, &ourCopies)
            let theirPlaces = try places(of: value.opened, in: their, &theirCopies)
            if !ourPlaces.contains(where: { isKept($0, false) }),
                !theirPlaces.contains(where: { isKept($0, true) })
            {
                lost.append(value)
            }
        }
        return lost
    }

    /// Returns the values of either file that this device cannot open, where both files have such a value that looks
    /// the same from outside. Values look the same when they have the same service, class set, policy and length.
    func unread(
        of our: CheckedCopy, _ their: CheckedCopy
    ) -> (ours: [(ItemIdentifier, MergePlan.Version)], theirs: [(ItemIdentifier, MergePlan.Version)]) {
        func looks(_ values: [(item: ItemIdentifier, version: MergePlan.Version)]) -> Set<Look> {
            Set(values.map { Look($0.version.entry) })
        }
        let ours = ours.filter { !our.opens($0.version.entry) }
        let theirs = theirs.filter { !their.opens($0.version.entry) }
        let inBoth = looks(ours).intersection(looks(theirs))
        func isInBoth(_ value: (item: ItemIdentifier, version: MergePlan.Version)) -> Bool {
            inBoth.contains(Look(value.version.entry))
        }
        return (ours.filter(isInBoth), theirs.filter(isInBoth))
    }

    /// What can be known of a value without its keys.
    private struct Look: Hashable {
        var service: UInt64
        var set: UInt64
        var policy: UInt8
        var length: Int32

        init(_ entry: IndexEntry) {
            (service, set, policy) = (entry.serviceTag, entry.setTag, entry.policy)
            length = entry.bodyLength
        }
    }

    /// Returns the other file's values that this file has too. Memory holds these, and hashes of the others.
    private func inBoth(_ our: CheckedCopy, _ their: CheckedCopy) throws(TokenStorageError) -> [Value] {
        var (ourScanner, theirScanner) = (our.scanner(), their.scanner())
        var mine: [SettledConflicts.Name: [Int: [Int]]] = [:]
        for (number, dropped) in ours.enumerated() {
            guard let opened = try our.open(dropped.item, dropped.version.entry, &ourScanner) else {
                continue
            }
            mine[SettledConflicts.Name(opened.metadata), default: [:]][opened.valueHash, default: []]
                .append(number)
        }
        var values: [Value] = []
        for (item, version) in theirs {
            guard let opened = try their.open(item, version.entry, &theirScanner),
                let numbers = mine[SettledConflicts.Name(opened.metadata)]?[opened.valueHash]
            else { continue }
            let value = Value(item, version, opened, isTheirs: true)
            for number in numbers {
                let (item, version) = ours[number]
                guard let other = try our.open(item, version.entry, &ourScanner), other.isSame(as: opened)
                else { continue }
                values.append(value)
                break
            }
        }
        return values
    }

    /// Returns the items of a file that have this value, under its key or one that a merge made of that.
    private func places(
        of value: TokenItem, in copy: CheckedCopy, _ copies: inout SettledConflicts.Copies
    ) throws(TokenStorageError) -> [ItemIdentifier] {
        let places = try copies.copies(of: value)
        let item = try copy.codec.item(service: value.metadata.service, key: value.metadata.key)
        var scanner = copy.scanner()
        guard let entry = copy.entry(of: item), let there = try copy.open(item, entry, &scanner),
            there.isSame(as: value)
        else { return places }
        return places + [item]
    }
}

extension DroppedValues.Value {
    fileprivate init(
        _ item: ItemIdentifier, _ version: MergePlan.Version, _ opened: TokenItem, isTheirs: Bool
    ) {
        (self.item, self.version, self.opened, self.isTheirs) = (item, version, opened, isTheirs)
        self.opened.metadata.key = SettledConflicts.original(of: opened.metadata.key)
    }

    fileprivate func isSame(as other: Self) -> Bool {
        Bytes.areEqual(opened.metadata.service, other.opened.metadata.service)
            && opened.metadata.key == other.opened.metadata.key && opened.isSame(as: other.opened)
    }
}
