internal import TokenVaultCore
internal import TokenVaultCrypto

/// A frame of the log:
///
/// ```
/// offset  length
/// 0       4       magic "TVF1"
/// 4       4       length of the whole frame, a multiple of 8
/// 8       184     header, sealed under the log key
/// 192     m       metadata, sealed under the class's metadata key
/// 192+m   b       body, sealed under the class's secret key
/// end-32  16      first half of the content digest: a check without keys
/// end-16  16      BLAKE2b-128 of bytes 0 to 191: a check without keys
/// ```
enum Frame {
    static let magic = Array("TVF1".utf8)
    static let prefixLength = 8
    static let sealedHeaderLength = FrameHeader.length + AuthenticatedEncryption.overhead
    /// The offset of the contents.
    static let contentOffset = prefixLength + sealedHeaderLength
    static let checksumLength = 16
    static let trailerLength = 2 * checksumLength
    static let overhead = contentOffset + trailerLength

    /// The largest metadata and body, sealed: a secret of 1 MiB, padded, with room to spare.
    static let maximumMetadata = 256 << 10
    static let maximumBody = 1_400_000
    static let maximumLength = overhead + maximumMetadata + maximumBody

    /// Returns the length that a prefix of eight bytes announces; `nil` when it is no prefix of a frame.
    static func length(ofPrefix bytes: [UInt8], at offset: Int = 0) -> Int? {
        guard bytes.count >= offset + prefixLength else { return nil }
        for index in 0..<magic.count where bytes[offset + index] != magic[index] { return nil }
        var reader = ByteReader(bytes, in: offset + 4..<offset + 8)
        guard let length = try? Int(reader.integer(UInt32.self)) else { return nil }
        guard length >= overhead, length <= maximumLength, length.isMultiple(of: 8) else { return nil }
        return length
    }

    /// Writes the prefix of a frame of `length` bytes to the front of `bytes`.
    static func putPrefix(length: Int, into bytes: inout [UInt8]) {
        bytes.put(magicNumber | UInt64(UInt32(length)) << 32, at: 0)
    }

    // The magic as a little-endian integer.
    private static let magicNumber = magic.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
}

/// The type of a record.
enum RecordType: UInt8, Sendable {
    /// The first frame of a file: epoch, base sequence, keybag.
    case genesis = 1
    /// An item's metadata and body.
    case item = 2
    /// The deletion of an item.
    case deletion = 3
    /// The keybag in use from here on.
    case keybag = 4
    /// A checkpoint: everything before this frame was durable when the frame was written.
    case checkpoint = 5
    /// A notice that a compacted file is about to replace this one: readers look at the path.
    case superseded = 6
    /// The commits of earlier epochs that the log descends from, right behind the first frame.
    case ancestry = 7
    /// The pages of an index of everything in front of them.
    case indexPages = 128
    /// The end of an index: its summary.
    case index = 129

    /// The first type that a program may skip without knowing it; lower types may not be skipped.
    static let firstIgnorable: UInt8 = 128
}

/// The plaintext of a frame's header.
struct FrameHeader: Equatable, Sendable {
    /// The type as written; see ``RecordType``.
    var type: UInt8
    /// Whether the commit is complete with this frame.
    var endsCommit: Bool
    /// The policy's number, for items and deletions; zero otherwise.
    var policy: UInt8 = 0
    var keyVersion: UInt32 = 0
    /// The sequence of the commit: an item's generation.
    var generation: UInt64
    /// The place where the frames begin that were written together with this one. All before it was durable.
    var groupStart: UInt64
    /// The chain value of the frame before.
    var previous: Digest
    /// The tag of the commit that stored an item's value, where a merge wrote the frame again. The value is
    /// zero where the generation is the number of that commit.
    var storedBy: UInt64 = 0
    var item: ItemIdentifier = .none
    /// The tag of the item's service, which does not contain its name.
    var serviceTag: UInt64 = 0
    /// The tag of the keys' class set: zero for the portable one.
    var setTag: UInt64 = 0
    var metadataLength: Int
    var bodyLength: Int
    /// BLAKE2b-256 of the sealed metadata and body.
    var contentDigest: Digest
    /// The random tag of an item's value, which its contents are sealed with. Another file of the vault may have another
    /// value of the same item and generation. Zero for other types.
    var valueTag: UInt64 = 0

    static let length = 144

    var frameLength: Int { Frame.overhead + metadataLength + bodyLength }

    /// Writes the ``length`` bytes at `offset`, as ``init(decoding:count:)`` reads them. There must be room
    /// for them.
    func put(into bytes: inout [UInt8], at offset: Int) {
        let kind = UInt64(type) | (endsCommit ? 1 << 8 : 0) | UInt64(policy) << 16
        bytes.put(kind | UInt64(keyVersion) << 32, at: offset)
        bytes.put(generation, at: offset + 8)
        bytes.put(groupStart, at: offset + 16)
        bytes.put(storedBy, at: offset + 24)
        previous.put(into: &bytes, at: offset + 32)
        bytes.put(item.high, at: offset + 64)
        bytes.put(item.low, at: offset + 72)
        bytes.put(serviceTag, at: offset + 80)
        bytes.put(setTag, at: offset + 88)
        bytes.put(UInt64(UInt32(metadataLength)) | UInt64(UInt32(bodyLength)) << 32, at: offset + 96)
        contentDigest.put(into: &bytes, at: offset + 104)
        bytes.put(valueTag, at: offset + 136)
    }

    /// Decodes all of `bytes`, or the first `count` of them.
    init(decoding bytes: [UInt8], count: Int? = nil) throws(FormatError) {
        guard count ?? bytes.count == Self.length, bytes.count >= Self.length else { throw .tooShort }
        var reader = ByteReader(bytes, in: 0..<Self.length)
        type = try reader.integer(UInt8.self)
        let flags = try reader.integer(UInt8.self)
        guard flags <= 1 else { throw .newerVersion }
        endsCommit = flags == 1
        policy = try reader.integer(UInt8.self)
        guard try reader.integer(UInt8.self) == 0 else { throw .newerVersion }
        keyVersion = try reader.integer(UInt32.self)
        generation = try reader.integer(UInt64.self)
        groupStart = try reader.integer(UInt64.self)
        storedBy = try reader.integer(UInt64.self)
        guard storedBy == 0 || type == RecordType.item.rawValue else { throw .newerVersion }
        previous = try Digest(&reader)
        item = ItemIdentifier(
            high: try reader.integer(UInt64.self), low: try reader.integer(UInt64.self))
        serviceTag = try reader.integer(UInt64.self)
        setTag = try reader.integer(UInt64.self)
        metadataLength = Int(try reader.integer(UInt32.self))
        bodyLength = Int(try reader.integer(UInt32.self))
        contentDigest = try Digest(&reader)
        valueTag = try reader.integer(UInt64.self)
        guard valueTag == 0 || type == RecordType.item.rawValue else { throw .newerVersion }
        guard metadataLength <= Frame.maximumMetadata, bodyLength <= Frame.maximumBody,
            generation <= VaultFormat.largestSequence
        else { throw .outOfBounds }
    }

    init(
        type: UInt8, endsCommit: Bool, policy: UInt8, keyVersion: UInt32, generation: UInt64,
        groupStart: UInt64, previous: Digest, storedBy: UInt64 = 0, item: ItemIdentifier, serviceTag: UInt64,
        setTag: UInt64, metadataLength: Int, bodyLength: Int, contentDigest: Digest, valueTag: UInt64 = 0
    ) {
        self.valueTag = valueTag
        self.storedBy = storedBy
        self.type = type
        self.endsCommit = endsCommit
        self.policy = policy
        self.keyVersion = keyVersion
        self.generation = generation
        self.groupStart = groupStart
        self.previous = previous
        self.item = item
        self.serviceTag = serviceTag
        self.setTag = setTag
        self.metadataLength = metadataLength
        self.bodyLength = bodyLength
        self.contentDigest = contentDigest
    }
}

/// The keyed hash of a service and a key: 16 bytes that name an item in the log.
struct ItemIdentifier: Hashable, Sendable {
    var high: UInt64
    var low: UInt64

    static let none = ItemIdentifier(high: 0, low: 0)

    func append(to writer: inout ByteWriter) {
        writer.append(high)
        writer.append(low)
    }
}
