/// Where an item's newest frame is, and what can be known of it without its class's keys.
struct IndexEntry: Equatable, Sendable {
    var offset: Int
    var metadataLength: Int32
    var bodyLength: Int32
    var generation: UInt64
    var serviceTag: UInt64
    var setTag: UInt64
    var keyVersion: UInt32
    var policy: UInt8

    var contentStart: Int { offset + Frame.contentOffset }
    var contentLength: Int { Int(metadataLength) + Int(bodyLength) }
    var frameLength: Int { Frame.overhead + contentLength }
    var metadataRange: Range<Int> { contentStart..<contentStart + Int(metadataLength) }
    var bodyRange: Range<Int> {
        contentStart + Int(metadataLength)..<contentStart + contentLength
    }
}

extension IndexEntry {
    /// Whether both are sealed under the same class's keys.
    func hasKeys(of other: IndexEntry) -> Bool {
        policy == other.policy && setTag == other.setTag && keyVersion == other.keyVersion
    }

    init(_ header: FrameHeader, at offset: Int) {
        self.init(
            offset: offset, metadataLength: Int32(header.metadataLength),
            bodyLength: Int32(header.bodyLength), generation: header.generation,
            serviceTag: header.serviceTag, setTag: header.setTag, keyVersion: header.keyVersion,
            policy: header.policy)
    }
}

/// What the log holds now: the newest frame of every item, and the dead ones that still hold a value. What an
/// index block says stays in the file and is read page by page; what came since is in memory.
struct LogIndex: Sendable {
    /// The index block that the rest is newer than; `nil` where all of the log was walked.
    let block: IndexReader?
    private var entries: [ItemIdentifier: IndexEntry] = [:]
    /// Items that were deleted since the block was written.
    private var removed: Set<ItemIdentifier> = []
    /// Items that were deleted at least once since the block was written: nothing in it is their history.
    private var cut: Set<ItemIdentifier> = []
    /// Where older values of live items lie: their history, to be erased when the item is deleted.
    private var superseded: [ItemIdentifier: [IndexEntry]] = [:]
    /// Where values lie that were deleted and not erased.
    private var deleted: [ItemIdentifier: [IndexEntry]] = [:]
    /// Items whose older values in the block are erased by now.
    private var taken: Set<ItemIdentifier> = []
    private var liveBytesSince = 0

    init(block: IndexReader? = nil) { self.block = block }

    /// The newest value of `item`. Throws `corrupt` when the page that would say is damaged; so do the others
    /// that throw.
    func entry(of item: ItemIdentifier) throws(TokenStorageError) -> IndexEntry? {
        if let entry = entries[item] { return entry }
        guard let block, !removed.contains(item) else { return nil }
        return try block.newest(item)
    }

    /// Makes room for as many entries more.
    mutating func reserve(_ more: Int) { entries.reserveCapacity(entries.count + more) }

    mutating func store(_ item: ItemIdentifier, _ entry: IndexEntry) {
        if let old = entries.updateValue(entry, forKey: item) { supersede(old, of: item) }
        if block != nil { removed.remove(item) }
        liveBytesSince += entry.frameLength
    }

    mutating func remove(_ item: ItemIdentifier) {
        if let old = entries.removeValue(forKey: item) { supersede(old, of: item) }
        if let values = superseded.removeValue(forKey: item) { deleted[item, default: []] += values }
        guard block != nil else { return }
        removed.insert(item)
        cut.insert(item)
    }

    private mutating func supersede(_ old: IndexEntry, of item: ItemIdentifier) {
        liveBytesSince -= old.frameLength
        superseded[item, default: []].append(old)
    }

    /// Every place where a value of `item` lies that is not its newest, forgetting them.
    mutating func takeSuperseded(_ item: ItemIdentifier) throws(TokenStorageError) -> [IndexEntry] {
        let older = try olderInBlock(of: item).map(\.entry)
        if block != nil { taken.insert(item) }
        return older + (deleted.removeValue(forKey: item) ?? [])
            + (superseded.removeValue(forKey: item) ?? [])
    }

    /// The values that `item` had before its newest one, as far as they are still there, oldest first. None of them is from
    /// before a deletion.
    func replaced(_ item: ItemIdentifier) throws(TokenStorageError) -> [IndexEntry] {
        try olderInBlock(of: item).filter { $0.kind == .replaced }.map(\.entry) + (superseded[item] ?? [])
    }

    private func olderInBlock(of item: ItemIdentifier) throws(TokenStorageError) -> [IndexRecord] {
        guard let block, !taken.contains(item) else { return [] }
        return older(of: item, in: try block.records(of: item))
    }

    /// Which of an item's records in the block are not its newest value, in the order of their places, as what they are now.
    private func older(of item: ItemIdentifier, in records: [IndexRecord]) -> [IndexRecord] {
        if taken.contains(item) { return [] }
        let isChanged = entries[item] != nil || removed.contains(item)
        let isCut = cut.contains(item)
        var older = records.filter { isChanged || !$0.isNewest }
        for index in older.indices where isCut || older[index].isNewest {
            older[index].kind = isCut ? .deleted : .replaced
        }
        return older.sorted { $0.entry.offset < $1.entry.offset }
    }

    // MARK: - All of them

    /// About how many items there are: those of the block, and those stored since.
    var roughCount: Int { (block?.summary.items ?? 0) + entries.count }

    /// Bytes of live frames, or more: what of the block was replaced since is not left out.
    var liveBytesAtMost: Int { (block?.summary.liveBytes ?? 0) + liveBytesSince }

    /// What the frames of the block take.
    var blockLength: Int { block?.length ?? 0 }

    /// The number of items, and the bytes of their frames.
    func figures() throws(TokenStorageError) -> (items: Int, liveBytes: Int) {
        var figures = (items: roughCount, liveBytes: liveBytesAtMost)
        guard let block else { return figures }
        for items in [AnyCollection(entries.keys), AnyCollection(removed)] {
            for item in items {
                guard let old = try block.newest(item) else { continue }
                figures.items -= 1
                figures.liveBytes -= old.frameLength
            }
        }
        return figures
    }

    /// Whether there may be items of a class for which `isMeant` is true: those of the block's that were replaced
    /// or deleted since are taken to be there.
    func mayHave(_ isMeant: (_ policy: UInt8, _ setTag: UInt64, _ keyVersion: UInt32) -> Bool) -> Bool {
        let inBlock = block?.summary.classes.contains { isMeant($0.policy, $0.setTag, $0.keyVersion) }
        return inBlock ?? false
            || entries.values.contains { isMeant($0.policy, $0.setTag, $0.keyVersion) }
    }

    /// The number of items of the classes for which `isMeant` is true.
    func count(
        where isMeant: (_ policy: UInt8, _ setTag: UInt64, _ keyVersion: UInt32) -> Bool
    ) throws(TokenStorageError) -> Int {
        var count = entries.values.count { isMeant($0.policy, $0.setTag, $0.keyVersion) }
        let inBlock = block?.summary.classes.filter { isMeant($0.policy, $0.setTag, $0.keyVersion) } ?? []
        guard let block, !inBlock.isEmpty else { return count }
        count += inBlock.reduce(0) { $0 + Int($1.items) }
        for items in [AnyCollection(entries.keys), AnyCollection(removed)] {
            for item in items {
                guard let old = try block.newest(item), isMeant(old.policy, old.setTag, old.keyVersion) else {
                    continue
                }
                count -= 1
            }
        }
        return count
    }

    /// Every item, in no order.
    func forEachItem(
        _ body: (ItemIdentifier, IndexEntry) throws(TokenStorageError) -> Void
    ) throws(TokenStorageError) {
        try forEachItem(ofPages: 0..<(block?.summary.pages ?? 0), body)
        try forEachNewItem(body)
    }

    /// Every item that some pages of the block say the newest value of.
    func forEachItem(
        ofPages pages: Range<Int>, _ body: (ItemIdentifier, IndexEntry) throws(TokenStorageError) -> Void
    ) throws(TokenStorageError) {
        try block?.forEach(ofPages: pages) { (record) throws(TokenStorageError) in
            guard record.isNewest, entries[record.item] == nil, !removed.contains(record.item) else { return }
            try body(record.item, record.entry)
        }
    }

    /// Every item that was stored since the block was written.
    func forEachNewItem<Failure: Error>(
        _ body: (ItemIdentifier, IndexEntry) throws(Failure) -> Void
    ) throws(Failure) {
        for (item, entry) in entries { try body(item, entry) }
    }

    /// Every item with its newest entry, in the order of their places in the file.
    func itemsByOffset() throws(TokenStorageError) -> [(ItemIdentifier, IndexEntry)] {
        var items: [(ItemIdentifier, IndexEntry)] = []
        items.reserveCapacity(roughCount)
        try forEachItem { item, entry in items.append((item, entry)) }
        items.sort { $0.1.offset < $1.1.offset }
        return items
    }

    /// Every item with its newest value and at most `kept` of those before, in the order of their places in the file.
    func valuesByOffset(keeping kept: Int) throws(TokenStorageError) -> [IndexRecord] {
        var values: [IndexRecord] = []
        values.reserveCapacity(roughCount)
        try forEachItem { item, entry in values.append(IndexRecord(item, entry, .newest)) }
        if kept > 0 {
            try forEachKept(kept) { item, entry in values.append(IndexRecord(item, entry, .replaced)) }
        }
        values.sort { $0.entry.offset < $1.entry.offset }
        return values
    }

    /// At most `kept` values of every item that are not its newest: the last ones. They are sealed under the keys of the newest:
    /// nothing stays under a policy that the item has no more, or under keys that are on their way out.
    func forEachKept(
        _ kept: Int, _ body: (ItemIdentifier, IndexEntry) throws(TokenStorageError) -> Void
    ) throws(TokenStorageError) {
        var newest: IndexRecord?
        var ofOne: [IndexRecord] = []
        func give() throws(TokenStorageError) {
            for record in ofOne.suffix(kept) { try body(record.item, record.entry) }
            ofOne.removeAll(keepingCapacity: true)
        }
        try forEachRecord { (record) throws(TokenStorageError) in
            if record.isNewest {
                try give()
                newest = record
            } else if record.kind == .replaced, let newest, newest.item == record.item,
                newest.entry.hasKeys(of: record.entry)
            {
                ofOne.append(record)
            }
        }
        try give()
    }

    /// Bytes of the frames that ``valuesByOffset(keeping:)`` adds for `kept`.
    func keptBytes(_ kept: Int) throws(TokenStorageError) -> Int {
        if kept == 0 { return 0 }
        var bytes = 0
        try forEachKept(kept) { _, entry in bytes += entry.frameLength }
        return bytes
    }

    /// At most how many records ``forEachRecord(_:)`` gives.
    var mostRecords: Int {
        (block?.summary.records ?? 0) + entries.count + superseded.values.reduce(0) { $0 + $1.count }
            + deleted.values.reduce(0) { $0 + $1.count }
    }

    /// Every record of a new index block, in its order.
    func forEachRecord(
        _ body: (IndexRecord) throws(TokenStorageError) -> Void
    ) throws(TokenStorageError) {
        let (changes, stored) = changesInOrder()
        var next = 0
        func give(
            _ item: ItemIdentifier, change: Int?, _ records: [IndexRecord]
        ) throws(TokenStorageError) {
            if let newest = change.flatMap({ stored[$0] }) {
                try body(IndexRecord(item, newest, .newest))
            } else if change.map({ !changes[$0].isRemoved }) ?? true,
                let newest = records.first(where: \.isNewest)
            {
                try body(newest)
            }
            if records.isEmpty, superseded.isEmpty, deleted.isEmpty { return }
            for record in older(of: item, in: records) { try body(record) }
            for entry in deleted[item] ?? [] { try body(IndexRecord(item, entry, .deleted)) }
            for entry in superseded[item] ?? [] { try body(IndexRecord(item, entry, .replaced)) }
        }
        func giveChanged(before item: ItemIdentifier?) throws(TokenStorageError) {
            while next < changes.count, item.map({ changes[next].item < $0 }) ?? true {
                try give(changes[next].item, change: next, [])
                next += 1
            }
        }
        func giveAll(_ records: [IndexRecord]) throws(TokenStorageError) {
            guard let item = records.first?.item else { return }
            try giveChanged(before: item)
            guard next < changes.count, changes[next].item == item else {
                return try give(item, change: nil, records)
            }
            try give(item, change: next, records)
            next += 1
        }
        var ofOne: [IndexRecord] = []
        try block?.forEach { (record) throws(TokenStorageError) in
            if let item = ofOne.first?.item, item != record.item {
                try giveAll(ofOne)
                ofOne.removeAll(keepingCapacity: true)
            }
            ofOne.append(record)
        }
        try giveAll(ofOne)
        try giveChanged(before: nil)
    }

    /// An item that is not as the block says.
    private struct Change {
        let item: ItemIdentifier
        /// Where its newest value is in a list; `nil` when it has none.
        var place: Int?
        var isRemoved = false
    }

    /// Every item that changed since the block was written, in order, and its newest value if there is one.
    private func changesInOrder() -> (changes: [Change], stored: [IndexEntry?]) {
        var changes: [Change] = []
        var values: [IndexEntry] = []
        changes.reserveCapacity(entries.count + removed.count + deleted.count)
        values.reserveCapacity(entries.count)
        for (item, entry) in entries {
            changes.append(Change(item: item, place: values.count))
            values.append(entry)
        }
        // An item is stored or removed, never both.
        for item in removed { changes.append(Change(item: item, isRemoved: true)) }
        for item in deleted.keys where entries[item] == nil && !removed.contains(item) {
            changes.append(Change(item: item))
        }
        changes.sort { $0.item < $1.item }
        // Here, where nothing else is done, the processor waits for many of them at once. Waiting for each where it is
        // written took longer than all the rest of an index.
        return (changes, changes.map { change in change.place.map { values[$0] } })
    }
}
