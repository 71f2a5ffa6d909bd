/// Where an item's newest frame is, and what can be known of it without its class's keys.
struct IndexEntry: Sendable {
    var offset: Int
    var metadataLength: Int32
    var bodyLength: Int32
    var generation: UInt64
    var serviceTag: UInt64
    var setTag: UInt64
    var keyVersion: UInt32
    var policy: UInt8

    init(_ header: FrameHeader, at offset: Int) {
        self.offset = offset
        metadataLength = Int32(header.metadataLength)
        bodyLength = Int32(header.bodyLength)
        generation = header.generation
        serviceTag = header.serviceTag
        setTag = header.setTag
        keyVersion = header.keyVersion
        policy = header.policy
    }

    var contentStart: Int { offset + Frame.contentOffset }
    var contentLength: Int { Int(metadataLength) + Int(bodyLength) }
    var frameLength: Int { Frame.overhead + contentLength }
    var metadataRange: Range<Int> { contentStart..<contentStart + Int(metadataLength) }
    var bodyRange: Range<Int> {
        contentStart + Int(metadataLength)..<contentStart + contentLength
    }
}

/// What the log holds now: the newest frame of every item, and the dead ones that still hold a value.
struct LogIndex: Sendable {
    private(set) var entries: [ItemIdentifier: IndexEntry] = [:]
    /// Where older values of live items lie, for erasing them when the item is deleted.
    private(set) var superseded: [ItemIdentifier: [IndexEntry]] = [:]
    /// Bytes of live frames.
    private(set) var liveBytes = 0

    subscript(item: ItemIdentifier) -> IndexEntry? { entries[item] }

    mutating func store(_ item: ItemIdentifier, _ entry: IndexEntry) {
        if let old = entries.updateValue(entry, forKey: item) {
            liveBytes -= old.frameLength
            superseded[item, default: []].append(old)
        }
        liveBytes += entry.frameLength
    }

    mutating func remove(_ item: ItemIdentifier) {
        guard let old = entries.removeValue(forKey: item) else { return }
        liveBytes -= old.frameLength
        superseded[item, default: []].append(old)
    }

    /// Every place where a value of `item` lies that is not its newest, forgetting them.
    mutating func takeSuperseded(_ item: ItemIdentifier) -> [IndexEntry] {
        superseded.removeValue(forKey: item) ?? []
    }
}
