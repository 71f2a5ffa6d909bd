internal import TokenVaultCore

/// The body of a genesis frame.
struct GenesisRecord: Equatable, Sendable {
    /// The epoch; compaction and restore begin a new one.
    var epoch: Epoch
    /// The sequence that the log begins after.
    var baseSequence: UInt64
    var keybag: KeybagRecord

    func encoded() -> [UInt8] {
        var writer = ByteWriter(reserving: 80)
        epoch.append(to: &writer)
        writer.append(baseSequence)
        writer.append(keybag.generation)
        keybag.digest.append(to: &writer)
        return writer.bytes
    }

    init(epoch: Epoch, baseSequence: UInt64, keybag: KeybagRecord) {
        self.epoch = epoch
        self.baseSequence = baseSequence
        self.keybag = keybag
    }

    init(decoding bytes: [UInt8]) throws(FormatError) {
        var reader = ByteReader(bytes)
        epoch = try Epoch(&reader)
        baseSequence = try reader.integer(UInt64.self)
        keybag = try KeybagRecord(&reader)
        guard baseSequence <= VaultFormat.largestSequence, reader.remaining == 0 else { throw .outOfBounds }
    }
}

/// An epoch of the log. Epochs count up; the random part tells two epochs with one number apart.
struct Epoch: Equatable, Sendable {
    var number: UInt64
    var identifier: Bytes16

    func append(to writer: inout ByteWriter) {
        writer.append(number)
        identifier.append(to: &writer)
    }

    init(number: UInt64, identifier: Bytes16) {
        self.number = number
        self.identifier = identifier
    }

    init(_ reader: inout ByteReader) throws(FormatError) {
        number = try reader.integer(UInt64.self)
        identifier = try Bytes16(&reader)
        guard number <= VaultFormat.largestSequence else { throw .outOfBounds }
    }
}

/// The body of a keybag frame: the keybag in use.
struct KeybagRecord: Equatable, Sendable {
    var generation: UInt64
    var digest: Digest

    func encoded() -> [UInt8] {
        var writer = ByteWriter(reserving: 40)
        writer.append(generation)
        digest.append(to: &writer)
        return writer.bytes
    }

    init(generation: UInt64, digest: Digest) {
        self.generation = generation
        self.digest = digest
    }

    init(_ reader: inout ByteReader) throws(FormatError) {
        generation = try reader.integer(UInt64.self)
        digest = try Digest(&reader)
        guard generation <= VaultFormat.largestSequence else { throw .outOfBounds }
    }

    init(decoding bytes: [UInt8]) throws(FormatError) {
        var reader = ByteReader(bytes)
        try self.init(&reader)
        guard reader.remaining == 0 else { throw .outOfBounds }
    }
}
