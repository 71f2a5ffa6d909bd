internal import TokenVaultCore

/// The contents of an index's last frame: the log in front of the index, and the page of each item.
struct IndexSummary: Equatable, Sendable {
    /// The items of one class of keys.
    struct ClassCount: Equatable, Sendable {
        var policy: UInt8
        var keyVersion: UInt32
        var setTag: UInt64
        var items: UInt64
    }

    /// The random identifier that the pages are bound to.
    var identifier: [UInt8]
    /// The offset of the index's first frame.
    var start: Int
    var sequence: UInt64
    var keybag: KeybagRecord
    /// The number of all records, also those of older values.
    var records: Int
    /// Bytes of the frames of live items.
    var liveBytes: Int
    /// Live items by class.
    var classes: [ClassCount]
    /// The upper half of each page's first item.
    var fences: [UInt64]

    static let identifierLength = 16

    /// The number of live items.
    var items: Int { classes.reduce(0) { $0 + Int($1.items) } }
    var pages: Int { fences.count }

    init(
        identifier: [UInt8], start: Int, sequence: UInt64, keybag: KeybagRecord, records: Int = 0,
        liveBytes: Int = 0, classes: [ClassCount] = [], fences: [UInt64] = []
    ) {
        self.identifier = identifier
        self.start = start
        self.sequence = sequence
        self.keybag = keybag
        self.records = records
        self.liveBytes = liveBytes
        self.classes = classes
        self.fences = fences
    }

    /// Counts a live item.
    mutating func count(_ entry: IndexEntry) {
        liveBytes += entry.frameLength
        let index = classes.firstIndex {
            $0.policy == entry.policy && $0.keyVersion == entry.keyVersion && $0.setTag == entry.setTag
        }
        if let index {
            classes[index].items += 1
        } else {
            classes.append(
                ClassCount(
                    policy: entry.policy, keyVersion: entry.keyVersion, setTag: entry.setTag, items: 1))
        }
    }

    /// The most classes of an index: many more than a keybag has room for, and few enough for ``roomForFrame(pages:)``.
    static let mostClasses = 320

    /// Returns the most bytes that the frame of a summary of `pages` pages takes, with a class for each
    /// policy and set.
    static func roomForFrame(pages: Int) -> Int { Frame.overhead + 8 * pages + (8 << 10) }

    func encoded() -> [UInt8] {
        var writer = ByteWriter(reserving: 160 + classes.count * 24 + fences.count * 8)
        writer.append(identifier)
        writer.append(UInt64(start))
        writer.append(sequence)
        writer.append(keybag.generation)
        keybag.digest.append(to: &writer)
        writer.append(UInt64(records))
        writer.append(UInt64(liveBytes))
        writer.append(UInt32(classes.count))
        writer.append(UInt32(fences.count))
        for one in classes {
            writer.append(one.policy)
            writer.appendZeros(3)
            writer.append(one.keyVersion)
            writer.append(one.setTag)
            writer.append(one.items)
        }
        for fence in fences { writer.append(fence) }
        return writer.bytes
    }

    init(decoding bytes: [UInt8]) throws(FormatError) {
        var reader = ByteReader(bytes)
        identifier = try reader.bytes(Self.identifierLength)
        start = try Self.number(&reader)
        sequence = try reader.integer(UInt64.self)
        keybag = try KeybagRecord(&reader)
        records = try Self.number(&reader)
        liveBytes = try Self.number(&reader)
        let classCount = Int(try reader.integer(UInt32.self))
        let pages = Int(try reader.integer(UInt32.self))
        guard reader.remaining == classCount * 24 + pages * 8, pages == IndexFormat.pages(for: records),
            sequence <= VaultFormat.largestSequence
        else { throw .outOfBounds }
        classes = []
        fences = []
        var items = 0
        for _ in 0..<classCount {
            let policy = try reader.integer(UInt8.self)
            guard try reader.bytes(3) == [0, 0, 0] else { throw .newerVersion }
            let keyVersion = try reader.integer(UInt32.self)
            let setTag = try reader.integer(UInt64.self)
            let ofClass = try Self.number(&reader)
            items += ofClass
            guard items <= records else { throw .outOfBounds }
            classes.append(
                ClassCount(policy: policy, keyVersion: keyVersion, setTag: setTag, items: UInt64(ofClass)))
        }
        fences.reserveCapacity(pages)
        for _ in 0..<pages { fences.append(try reader.integer(UInt64.self)) }
    }

    private static func number(_ reader: inout ByteReader) throws(FormatError) -> Int {
        let value = try reader.integer(UInt64.self)
        guard value <= IndexFormat.largestOffset else { throw .outOfBounds }
        return Int(value)
    }
}
