/// One of the two slots of an anchor file: how far this device has seen a vault go.
struct AnchorSlot: Equatable, Sendable {
    /// Grows with every write; the slot is chosen by its parity.
    var counter: UInt64
    var epoch: Epoch
    var sequence: UInt64
    /// The chain value of the last frame covered.
    var head: Digest
    var keybagGeneration: UInt64

    static let magic = Array("TVANCHR1".utf8)
    /// Each slot has a sector of its own, so that writing one cannot tear the other.
    static let length = VaultFormat.sector
    static let codeLength = 32
    static let authenticatedLength = 8 + 8 + 24 + 8 + 32 + 8

    func authenticatedBytes() -> [UInt8] {
        var writer = ByteWriter(reserving: Self.authenticatedLength)
        writer.append(Self.magic)
        writer.append(counter)
        epoch.append(to: &writer)
        writer.append(sequence)
        head.append(to: &writer)
        writer.append(keybagGeneration)
        return writer.bytes
    }

    init(
        counter: UInt64, epoch: Epoch, sequence: UInt64, head: Digest, keybagGeneration: UInt64
    ) {
        self.counter = counter
        self.epoch = epoch
        self.sequence = sequence
        self.head = head
        self.keybagGeneration = keybagGeneration
    }

    init(decoding bytes: [UInt8]) throws(FormatError) {
        guard bytes.starts(with: Self.magic) else { throw .wrongMagic }
        var reader = ByteReader(bytes, in: Self.magic.count..<bytes.count)
        counter = try reader.integer(UInt64.self)
        epoch = try Epoch(&reader)
        sequence = try reader.integer(UInt64.self)
        head = try Digest(&reader)
        keybagGeneration = try reader.integer(UInt64.self)
    }
}
