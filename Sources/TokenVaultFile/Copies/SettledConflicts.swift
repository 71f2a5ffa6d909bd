internal import TokenVaultCore

/// The conflicts of two files that earlier merges have settled, or settled differently.
///
/// A merge that finds two values keeps one under a key that it makes of the item's. When both files have seen
/// both values, a value that one of them has nowhere any more was replaced or deleted there, and gives way.
struct SettledConflicts {
    /// The items whose value in the other file counts.
    private(set) var taken: Set<ItemIdentifier> = []
    /// The items whose value in the other file needs no key of its own.
    private(set) var kept: Set<ItemIdentifier> = []
    /// The copies in this file whose value is under its own key in the new file.
    private(set) var needlessOfOurs: Set<ItemIdentifier> = []
    /// The same of the other file.
    private(set) var needlessOfTheirs: Set<ItemIdentifier> = []

    /// Looks at every item that both files have changed. `canTake` says whether a value of the other file can
    /// be in the new one. Throws `corrupt` where an item is damaged.
    init(
        _ plan: MergePlan, ours: CheckedCopy, theirs: CheckedCopy, canTake: (IndexEntry) -> Bool
    ) throws(TokenStorageError) {
        var (ourScanner, theirScanner) = (ours.scanner(), theirs.scanner())
        var (ourCopies, theirCopies) = (Copies(in: ours), Copies(in: theirs))
        for (item, entry) in ours.items {
            guard let there = theirs.entry(of: item),
                case .both(let our, let their, let isSeen) = plan.choice(
                    item, ours: try plan.ours.version(entry, &ourScanner),
                    theirs: try plan.theirs.version(there, &theirScanner)),
                let other = try theirs.open(item, their.entry, &theirScanner)
            else { continue }
            let mine = try ours.open(item, our.entry, &ourScanner)
            if let mine, mine.isSame(as: other) { continue }
            let here = try ourCopies.copies(of: other)
            // A copy that the other file has deleted goes with this merge.
            var stays = false
            for copy in here {
                guard let entry = ours.entry(of: copy) else { continue }
                let there = try theirs.entry(of: copy).map { (entry) throws(TokenStorageError) in
                    try plan.theirs.version(entry, &theirScanner)
                }
                switch plan.choice(
                    copy, ours: try plan.ours.version(entry, &ourScanner), theirs: there)
                {
                case .same, .ours, .both: stays = true
                case .theirs, .deleted: break
                }
            }
            if stays { kept.insert(item) }
            guard isSeen, let mine else { continue }
            let elsewhere = try theirCopies.copies(of: mine)
            needlessOfTheirs.formUnion(elsewhere)
            if !elsewhere.isEmpty {
                if here.isEmpty { kept.insert(item) }
            } else if !here.isEmpty, canTake(their.entry) {
                taken.insert(item)
                needlessOfOurs.formUnion(here)
            }
        }
    }

    /// The end of a key that a merge makes.
    static func ending(_ generation: UInt64, _ number: Int) -> String {
        " (conflict \(generation)\(number == 1 ? "" : ", \(number)"))"
    }

    /// Returns the key that a person gave: `key` without the ends that merges made.
    static func original(of key: TokenKey) -> TokenKey {
        var name = Substring(key.name)
        while let shorter = withoutEnding(name) { name = shorter }
        return TokenKey(String(name))
    }

    /// Returns `name` without the end that ``ending(_:_:)`` makes; `nil` where it has none. Reads only that end,
    /// since a key may have many.
    private static func withoutEnding(_ name: Substring) -> Substring? {
        func dropDigits(_ text: Substring.UTF8View) -> Substring.UTF8View? {
            let digits = text.reversed().prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }.count
            return digits > 0 ? text.dropLast(digits) : nil
        }
        func drop(_ end: String, from text: Substring.UTF8View) -> Substring.UTF8View? {
            text.suffix(end.utf8.count).elementsEqual(end.utf8) ? text.dropLast(end.utf8.count) : nil
        }
        guard let number = drop(")", from: name.utf8), let beginning = dropDigits(number) else { return nil }
        let start = " (conflict "
        if let rest = drop(start, from: beginning) { return Substring(rest) }
        guard let generation = drop(", ", from: beginning),
            let start = dropDigits(generation).flatMap({ drop(start, from: $0) })
        else { return nil }
        return Substring(start)
    }

    /// What the keys of a conflict have in common. A key that a merge makes of a long one has only its beginning.
    struct Name: Hashable {
        private let service: String
        private let beginning: [UInt8]

        /// The longest end that a merge makes, with a character that is left out whole.
        private static let longestEnding = 64

        init(_ metadata: TokenMetadata) {
            service = metadata.service
            beginning = Array(
                original(of: metadata.key).name.utf8.prefix(TokenKey.maximumLength - Self.longestEnding))
        }
    }

    /// The values of a file that earlier merges kept under another key. They are read when they are asked for
    /// first; memory holds a hash of each.
    struct Copies {
        private let copy: CheckedCopy
        private var found: [Name: [Int: [ItemIdentifier]]]?

        init(in copy: CheckedCopy) { self.copy = copy }

        /// Returns the items that have the value of `item`, under keys made of its key.
        mutating func copies(of item: TokenItem) throws(TokenStorageError) -> [ItemIdentifier] {
            let all = if let found { found } else { try read() }
            found = all
            guard let candidates = all[Name(item.metadata)]?[item.valueHash] else { return [] }
            var scanner = copy.scanner()
            var same: [ItemIdentifier] = []
            for candidate in candidates {
                guard let entry = copy.entry(of: candidate),
                    let opened = try copy.open(candidate, entry, &scanner), opened.isSame(as: item)
                else { continue }
                same.append(candidate)
            }
            return same
        }

        private func read() throws(TokenStorageError) -> [Name: [Int: [ItemIdentifier]]] {
            var all: [Name: [Int: [ItemIdentifier]]] = [:]
            var scanner = copy.scanner()
            for (item, entry) in copy.items {
                guard let metadata = try copy.metadata(of: item, entry, &scanner)?.metadata,
                    SettledConflicts.original(of: metadata.key) != metadata.key,
                    let opened = try copy.open(item, entry, &scanner)
                else { continue }
                all[Name(metadata), default: [:]][opened.valueHash, default: []].append(item)
            }
            return all
        }
    }
}

extension TokenItem {
    /// A hash of what ``isSame(as:)`` compares. Its key differs in every process, so the hash
    /// says nothing about the secret.
    var valueHash: Int {
        var hasher = Hasher()
        secret.withBytes { unsafe $0.withUnsafeBytes { unsafe hasher.combine(bytes: $0) } }
        hasher.combine(metadata.policy)
        hasher.combine(metadata.expires)
        for (name, value) in metadata.attributes {
            hasher.combine(TokenKey(name))
            hasher.combine(TokenKey(value))
        }
        return hasher.finalize()
    }
}
