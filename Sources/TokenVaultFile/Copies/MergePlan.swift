internal import TokenVaultCore

/// The plan for merging two files of one vault into a third, item by item.
///
/// Each value of an item was stored by one commit. When a file's history has the commit that stored the other
/// file's value, the file has replaced or deleted that value, or still has it. Where each file has a value
/// that the other one never had, the item is kept twice. Where the files cannot tell, an item is kept: a lost
/// deletion can be made again, a lost secret cannot.
struct MergePlan {
    /// A value of an item in one of the files.
    struct Version {
        var entry: IndexEntry
        /// The tag of the commit that stored the value; `nil` where that is so old that no list has it.
        var storedBy: UInt64?

        func asLeft(_ item: ItemIdentifier) -> Ancestry.LeftValue {
            Ancestry.LeftValue(item: item, storedBy: storedBy ?? 0)
        }
    }

    /// The outcome for an item.
    enum Choice {
        /// Both files have the same value.
        case same(Version)
        /// The item stays as this file has it.
        case ours(Version)
        /// The item is taken from the other file.
        case theirs(Version)
        /// Both files have changed the item. `isSeen` says that each of them has seen the other's value.
        case both(ours: Version, theirs: Version, isSeen: Bool)
        /// One of the files has deleted the item.
        case deleted
    }

    let ours: History
    let theirs: History
    /// The newest commit that both files have.
    private let fork: Ancestry.Commit

    /// Returns `nil` where the two files have no commit in common.
    init?(ours: Ancestry, theirs: Ancestry) {
        guard let fork = ours.newestCommon(with: theirs) else { return nil }
        self.ours = History(ours)
        self.theirs = History(theirs)
        self.fork = fork
    }

    /// Whether this file has every commit of the other file.
    var hasAllOfTheirs: Bool { theirs.newest.map(ours.contains) ?? false }
    /// Whether the other file has every commit of this file.
    var hasAllOfOurs: Bool { ours.newest.map(theirs.contains) ?? false }
    /// Whether the other file also has every value of this file's commits, or has replaced or deleted it.
    var isDescendantOfOurs: Bool { ours.newest.map(theirs.containsWhole) ?? false }

    /// Returns whether a generation does not tell which commit stored a value: a commit of either file may
    /// have that number.
    func isAmbiguous(_ generation: UInt64) -> Bool {
        generation > fork.sequence || ours.first(numbered: generation) != theirs.first(numbered: generation)
    }

    /// Returns whether a value is from before the fork.
    func isOld(_ entry: IndexEntry) -> Bool { entry.generation <= fork.sequence }

    /// Returns the outcome for `item`, which this file has as `our`, and the other file as `their`; `nil`
    /// where it is absent.
    func choice(_ item: ItemIdentifier, ours our: Version?, theirs their: Version?) -> Choice {
        func isKnown(_ our: Version) -> Bool { isKnownToTheirs(item, our) }
        func isKnownHere(_ their: Version) -> Bool { isIn(ours, item, their) }
        switch (our, their) {
        case (nil, nil): return .deleted
        case (let our?, nil): return isKnown(our) ? .deleted : .ours(our)
        case (nil, let their?): return isKnownHere(their) ? .deleted : .theirs(their)
        case (let our?, let their?):
            switch (isKnown(our), isKnownHere(their)) {
            case (false, false):
                // A value that is older than what both histories list.
                let isSame =
                    our.storedBy == their.storedBy
                    && !ours.hasLeft(our, of: item) && !theirs.hasLeft(their, of: item)
                return isSame ? .same(our) : .both(ours: our, theirs: their, isSeen: false)
            case (true, false): return .theirs(their)
            case (false, true): return .ours(our)
            case (true, true):
                let isSame =
                    our.storedBy.map { $0 == their.storedBy }
                    ?? (our.entry.generation == their.entry.generation)
                if isSame { return .same(our) }
                // Each side has seen both values. The side that has seen everything has decided.
                if hasAllOfTheirs { return .ours(our) }
                return hasAllOfOurs ? .theirs(their) : .both(ours: our, theirs: their, isSeen: true)
            }
        }
    }

    /// Returns whether the other file is known to have had this file's value of an item.
    func isKnownToTheirs(_ item: ItemIdentifier, _ our: Version) -> Bool { isIn(theirs, item, our) }

    /// Returns whether `other` is known to have had this value, even if it was replaced or deleted since. A
    /// history that was cut does not tell whether it had an older commit: the value then counts as new to it.
    private func isIn(_ other: History, _ item: ItemIdentifier, _ version: Version) -> Bool {
        if other.hasLeft(version, of: item) { return false }
        guard let tag = version.storedBy else { return isOld(version.entry) }
        return other.contains(tag)
    }
}

extension MergePlan {
    /// The commits of a file, for many questions about them.
    struct History {
        private let ancestry: Ancestry
        private let tags: Set<UInt64>
        private let numbered: [UInt64: UInt64]
        private let whole: Set<UInt64>

        init(_ ancestry: Ancestry) {
            self.ancestry = ancestry
            let all = ancestry.allCommits
            tags = Set(all.map(\.tag))
            numbered = Dictionary(all.map { ($0.sequence, $0.tag) }) { first, _ in first }
            whole = Set(ancestry.commits.map(\.tag))
        }

        /// The values that merges left in their copies.
        var left: Set<Ancestry.LeftValue> { ancestry.left }

        /// Returns whether a merge left this value in its copy. Where no list has the value's commit, that may be
        /// so of every value of the item.
        func hasLeft(_ version: Version, of item: ItemIdentifier) -> Bool {
            ancestry.left.contains(version.asLeft(item))
                || version.storedBy == nil && ancestry.left.contains { $0.item == item }
        }

        /// The tag of the newest commit.
        var newest: UInt64? { ancestry.commits.last?.tag }

        func contains(_ tag: UInt64) -> Bool { tags.contains(tag) }

        /// Returns whether the file also has every value of that commit's past, or has replaced or deleted it.
        func containsWhole(_ tag: UInt64) -> Bool { whole.contains(tag) }

        /// Returns the tag of the first commit with the sequence `number`: the one that changed items.
        /// Checkpoints and indexes behind it have its number as well. After a merge, other commits may have
        /// the number too; the items that they stored name them.
        func first(numbered number: UInt64) -> UInt64? { numbered[number] }

        /// Returns a value of the file with the commit that stored it. Throws `corrupt` where its frame is not
        /// at its place.
        func version(
            _ entry: IndexEntry, _ scanner: inout LogScanner
        ) throws(TokenStorageError) -> Version {
            let named = try scanner.storingCommit(of: entry)
            return Version(entry: entry, storedBy: named == 0 ? first(numbered: entry.generation) : named)
        }
    }
}
