internal import TokenVaultCore

/// The place of an item's newest frame, and the facts known without its class's keys.
struct IndexEntry: Equatable, Sendable {
    var offset: Int
    var metadataLength: Int32
    var bodyLength: Int32
    var generation: UInt64
    var serviceTag: UInt64
    var setTag: UInt64
    /// The tag that the contents are sealed with.
    var valueTag: UInt64
    var keyVersion: UInt32
    var policy: UInt8
    /// Whether the frame's header names the commit that stored the value.
    var isMerged = false

    var contentStart: Int { offset + Frame.contentOffset }
    var contentLength: Int { Int(metadataLength) + Int(bodyLength) }
    var frameLength: Int { Frame.overhead + contentLength }
    var metadataRange: Range<Int> { contentStart..<contentStart + Int(metadataLength) }
    var bodyRange: Range<Int> {
        contentStart + Int(metadataLength)..<contentStart + contentLength
    }
}

extension IndexEntry {
    /// Returns whether both are sealed under the same class's keys.
    func hasKeys(of other: IndexEntry) -> Bool {
        policy == other.policy && setTag == other.setTag && keyVersion == other.keyVersion
    }

    init(_ header: FrameHeader, at offset: Int) {
        self.init(
            offset: offset, metadataLength: Int32(header.metadataLength),
            bodyLength: Int32(header.bodyLength), generation: header.generation,
            serviceTag: header.serviceTag, setTag: header.setTag, valueTag: header.valueTag,
            keyVersion: header.keyVersion, policy: header.policy, isMerged: header.storedBy != 0)
    }
}

/// The present contents of the log: the newest frame of every item, and the dead ones that still hold a
/// value. The contents of an index block stay in the file and are read page by page; later changes are in
/// memory.
struct LogIndex: Sendable {
    /// The index block that the rest is newer than; `nil` where all of the log was walked.
    let block: IndexReader?
    private var entries: [ItemIdentifier: IndexEntry] = [:]
    /// Items that were deleted since the block was written.
    private var removed: Set<ItemIdentifier> = []
    /// Items that were deleted at least once since the block was written: no record in it is their history.
    private var cut: Set<ItemIdentifier> = []
    /// The places of older values of live items: their history, to be erased when the item is deleted.
    private var superseded: [ItemIdentifier: [IndexEntry]] = [:]
    /// The places of values that were deleted and not erased.
    private var deleted: [ItemIdentifier: [IndexEntry]] = [:]
    /// Items whose older values in the block are erased by now.
    private var taken: Set<ItemIdentifier> = []
    private var liveBytesSince = 0

    init(block: IndexReader? = nil) { self.block = block }

    /// Returns the newest value of `item`. Throws `corrupt` when the page for it is damaged; so do the other
    /// functions that throw.
    func entry(of item: ItemIdentifier) throws(TokenStorageError) -> IndexEntry? {
        if let entry = entries[item] { return entry }
        guard let block, !removed.contains(item) else { return nil }
        return try block.newest(item)
    }

    /// Makes room for `more` entries more.
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

    /// Returns every place of a value of `item` that is not its newest, and forgets them.
    mutating func takeSuperseded(_ item: ItemIdentifier) throws(TokenStorageError) -> [IndexEntry] {
        let older = try olderInBlock(of: item).map(\.entry)
        if block != nil { taken.insert(item) }
        return older + (deleted.removeValue(forKey: item) ?? [])
            + (superseded.removeValue(forKey: item) ?? [])
    }

    /// Returns the values that `item` had before its newest one, as far as they still exist, oldest first.
    /// None of them is from before a deletion.
    func replaced(_ item: ItemIdentifier) throws(TokenStorageError) -> [IndexEntry] {
        try olderInBlock(of: item).filter { $0.kind == .replaced }.map(\.entry) + (superseded[item] ?? [])
    }

    private func olderInBlock(of item: ItemIdentifier) throws(TokenStorageError) -> [IndexRecord] {
        guard let block, !taken.contains(item) else { return [] }
        return older(of: item, in: try block.records(of: item))
    }

    /// Returns an item's records in the block that are not its newest value, in the order of their places,
    /// with their present kinds.
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

    /// The approximate number of items: those of the block, and those stored since.
    var roughCount: Int { (block?.summary.items ?? 0) + entries.count }

    /// The bytes of live frames, or more: values of the block replaced since are not subtracted.
    var liveBytesAtMost: Int { (block?.summary.liveBytes ?? 0) + liveBytesSince }

    /// The length of the block's frames.
    var blockLength: Int { block?.length ?? 0 }

    /// Returns the number of items, and the bytes of their frames.
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

    /// Returns whether there may be items of a class for which `isMeant` is true. Items of the block that
    /// were replaced or deleted since count as present.
    func mayHave(_ isMeant: (_ policy: UInt8, _ setTag: UInt64, _ keyVersion: UInt32) -> Bool) -> Bool {
        let inBlock = block?.summary.classes.contains { isMeant($0.policy, $0.setTag, $0.keyVersion) }
        return inBlock ?? false
            || entries.values.contains { isMeant($0.policy, $0.setTag, $0.keyVersion) }
    }

    /// Returns the number of items of the classes for which `isMeant` is true.
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

    /// Runs `body` for every item, in no order.
    func forEachItem(
        _ body: (ItemIdentifier, IndexEntry) throws(TokenStorageError) -> Void
    ) throws(TokenStorageError) {
        try forEachItem(ofPages: 0..<(block?.summary.pages ?? 0), body)
        try forEachNewItem(body)
    }

    /// Runs `body` for every item whose newest value is in some pages of the block.
    func forEachItem(
        ofPages pages: Range<Int>, _ body: (ItemIdentifier, IndexEntry) throws(TokenStorageError) -> Void
    ) throws(TokenStorageError) {
        try block?.forEach(ofPages: pages) { (record) throws(TokenStorageError) in
            guard record.isNewest, entries[record.item] == nil, !removed.contains(record.item) else { return }
            try body(record.item, record.entry)
        }
    }

    /// Runs `body` for every item that was stored since the block was written.
    func forEachNewItem<Failure: Error>(
        _ body: (ItemIdentifier, IndexEntry) throws(Failure) -> Void
    ) throws(Failure) {
        for (item, entry) in entries { try body(item, entry) }
    }

    /// Returns every item with its newest entry, in the order of their places in the file.
    func itemsByOffset() throws(TokenStorageError) -> [(ItemIdentifier, IndexEntry)] {
        var items: [(ItemIdentifier, IndexEntry)] = []
        items.reserveCapacity(roughCount)
        try forEachItem { item, entry in items.append((item, entry)) }
        items.sort { $0.1.offset < $1.1.offset }
        return items
    }

    /// Returns every item with its newest value and at most `kept` of those before, in the order of their
    /// places in the file.
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

    /// Runs `body` for at most `kept` values of every item that are not its newest: the last ones. They are
    /// sealed under the keys of the newest. Nothing stays under a former policy of the item, or under
    /// outgoing keys.
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

    /// Returns the bytes of the frames that ``valuesByOffset(keeping:)`` adds for `kept`.
    func keptBytes(_ kept: Int) throws(TokenStorageError) -> Int {
        if kept == 0 { return 0 }
        var bytes = 0
        try forEachKept(kept) { _, entry in bytes += entry.frameLength }
        return bytes
    }

    /// The most records that ``forEachRecord(_:)`` gives.
    var mostRecords: Int {
        (block?.summary.records ?? 0) + entries.count + superseded.values.reduce(0) { $0 + $1.count }
            + deleted.values.reduce(0) { $0 + $1.count }
    }

    /// Runs `body` for every record of a new index block, in its order.
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

    /// An item that differs from the block.
    private struct Change {
        let item: ItemIdentifier
        /// The position of its newest value in a list; `nil` when it has none.
        var place: Int?
        var isRemoved = false
    }

    /// Returns every item that changed since the block was written, in order, and its newest value if there
    /// is one.
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
        // In this loop, which does nothing else, the processor waits for many values at once. Waiting for
        // each where it is written took longer than all the rest of an index.
        return (changes, changes.map { change in change.place.map { values[$0] } })
    }
}
