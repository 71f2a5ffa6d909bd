internal import TokenVaultCore

/// One line of the index: the place of an item's value, and the facts of its header.
struct IndexRecord: Equatable, Sendable {
    var item: ItemIdentifier
    var entry: IndexEntry
    var kind: Kind

    /// The relation of a value to its item.
    enum Kind: UInt8, Sendable {
        /// The present value.
        case newest = 1
        /// An earlier value: the item's history, to be erased when the item is deleted.
        case replaced = 2
        /// A value of a deleted item of this name that has not been erased.
        case deleted = 3
    }

    var isNewest: Bool { kind == .newest }

    static let length = 72

    init(_ item: ItemIdentifier, _ entry: IndexEntry, _ kind: Kind) {
        self.item = item
        self.entry = entry
        self.kind = kind
    }

    /// Writes the ``length`` bytes at `offset`, as ``init(_:)`` reads them. There must be room for them.
    func put(into bytes: inout [UInt8], at offset: Int) {
        bytes.put(item.high, at: offset)
        bytes.put(item.low, at: offset + 8)
        bytes.put(UInt64(entry.offset), at: offset + 16)
        bytes.put(entry.generation, at: offset + 24)
        bytes.put(entry.serviceTag, at: offset + 32)
        bytes.put(entry.setTag, at: offset + 40)
        bytes.put(UInt64(entry.keyVersion) | UInt64(UInt32(entry.metadataLength)) << 32, at: offset + 48)
        let last = UInt64(entry.policy) | UInt64(kind.rawValue) << 8 | (entry.isMerged ? 1 << 16 : 0)
        bytes.put(UInt64(UInt32(entry.bodyLength)) | last << 32, at: offset + 56)
        bytes.put(entry.valueTag, at: offset + 64)
    }

    init(_ reader: inout ByteReader) throws(FormatError) {
        item = ItemIdentifier(
            high: try reader.integer(UInt64.self), low: try reader.integer(UInt64.self))
        let offset = try reader.integer(UInt64.self)
        let generation = try reader.integer(UInt64.self)
        let serviceTag = try reader.integer(UInt64.self)
        let setTag = try reader.integer(UInt64.self)
        let keyVersion = try reader.integer(UInt32.self)
        let metadataLength = try reader.integer(UInt32.self)
        let bodyLength = try reader.integer(UInt32.self)
        let policy = try reader.integer(UInt8.self)
        guard let kind = Kind(rawValue: try reader.integer(UInt8.self)) else { throw .newerVersion }
        let merged = try reader.integer(UInt16.self)
        guard merged <= 1 else { throw .newerVersion }
        let valueTag = try reader.integer(UInt64.self)
        guard offset <= IndexFormat.largestOffset, generation <= VaultFormat.largestSequence,
            metadataLength <= Frame.maximumMetadata, bodyLength <= Frame.maximumBody
        else { throw .outOfBounds }
        self.kind = kind
        entry = IndexEntry(
            offset: Int(offset), metadataLength: Int32(metadataLength), bodyLength: Int32(bodyLength),
            generation: generation, serviceTag: serviceTag, setTag: setTag, valueTag: valueTag,
            keyVersion: keyVersion, policy: policy, isMerged: merged == 1)
    }
}

/// The numbers of the index block: sorted records on pages that are sealed one by one, so that finding an
/// item takes one page.
enum IndexFormat {
    /// The length of a page in the file: nonce, records, zeros, tag.
    static let pageLength = 4_096
    static let recordsPerPage = 56
    /// The length of a page's plaintext: its records, and zeros.
    static let plaintextLength = pageLength - 40
    /// The pages of a frame; the last frame of pages may have fewer.
    static let pagesPerFrame = 320
    /// The most pages: more do not fit into the table of the first items.
    static let mostPages = 160_000
    /// The largest offset: offsets are below 2^53, like everything that is counted.
    static let largestOffset: UInt64 = (1 << 53) - 1

    /// Returns the number of pages that `records` take.
    static func pages(for records: Int) -> Int { (records + recordsPerPage - 1) / recordsPerPage }

    /// Returns the number of bytes that the frames of `pages` take.
    static func length(ofPages pages: Int) -> Int {
        let frames = (pages + pagesPerFrame - 1) / pagesPerFrame
        return frames * Frame.overhead + pages * pageLength
    }

    /// Returns the offset of a page from the beginning of the index's first frame.
    static func offset(ofPage page: Int) -> Int {
        page / pagesPerFrame * (Frame.overhead + pagesPerFrame * pageLength) + Frame.contentOffset
            + page % pagesPerFrame * pageLength
    }
}
