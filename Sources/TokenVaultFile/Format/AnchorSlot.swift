internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// One of the two slots of an anchor file: the last state of a vault that this device has seen.
struct AnchorSlot: Equatable, Sendable {
    /// The counter, which grows with every write; its parity chooses the slot.
    var counter: UInt64
    var epoch: Epoch
    var sequence: UInt64
    /// The chain value of the last frame covered.
    var head: Digest
    var keybagGeneration: UInt64
    /// The file on this device. Any other file was put there whole, for example by a program that
    /// synchronises folders.
    var file: FileIdentity
    /// The epoch of the file that a compaction or a restore on this device is about to put in this one's
    /// place. The epoch of a restore does not descend from the head: the user asked for that.
    var coming: Epoch?
    /// The roots that the file's keybag is under, as far as this device knows them.
    var roots = RootNames()
    /// The same for the file of the coming epoch.
    var comingRoots = RootNames()

    static let magic = Array("TVANCHR1".utf8)
    /// The length of a slot: a sector of its own, so that writing one slot cannot tear the other.
    static let length = VaultFormat.sector
    static let codeLength = 32
    static let checksumLength = 16
    static let authenticatedLength = 8 + 8 + 24 + 8 + 32 + 8 + 16 + 24 + 64

    /// Whether the bytes of a slot are as they were written, under whatever key.
    static func isWhole(_ bytes: [UInt8]) -> Bool {
        let end = authenticatedLength + codeLength
        return bytes.starts(with: magic) && isAllZero(bytes, in: end + checksumLength..<bytes.count)
            && Hash.digest(bytes, in: 0..<end, length: checksumLength)
                == Array(bytes[end..<end + checksumLength])
    }

    /// Returns the bytes of the slot; `nil` when the key was wiped.
    func encoded(under key: SymmetricKey) -> [UInt8]? {
        var writer = ByteWriter(reserving: Self.length)
        writer.append(Self.magic)
        writer.append(counter)
        epoch.append(to: &writer)
        writer.append(sequence)
        head.append(to: &writer)
        writer.append(keybagGeneration)
        writer.append(file.device)
        writer.append(file.inode)
        (coming ?? .none).append(to: &writer)
        roots.append(to: &writer)
        comingRoots.append(to: &writer)
        guard let code = Digest(of: writer.bytes, key: key) else { return nil }
        code.append(to: &writer)
        writer.append(Hash.digest(writer.bytes, length: Self.checksumLength))
        writer.appendZeros(Self.length - writer.bytes.count)
        return writer.bytes
    }

    /// Creates the slot for a log that has come as far as `state`, whose keybag is under `roots`.
    init(counter: UInt64, _ state: LogState, roots: RootNames) {
        self.counter = counter
        self.roots = roots
        epoch = state.epoch
        sequence = state.sequence
        head = state.head
        keybagGeneration = state.keybag.generation
        file = state.identity
    }

    /// Returns whether the slot says all there is to say of a log that has come as far as `state`.
    func covers(_ state: LogState) -> Bool {
        head == state.head && epoch == state.epoch && file == state.identity
    }

    /// Returns the roots that a file of `epoch` is known to be under.
    func roots(in epoch: Epoch) -> RootNames { epoch == coming ? comingRoots : roots }

    func hasSameRoots(as other: Self) -> Bool {
        roots == other.roots && coming == other.coming && comingRoots == other.comingRoots
    }

    /// Returns whether a keybag may be that of the vault's file, or of the coming one.
    func mayBeFollowed(by succession: Succession) -> Bool {
        succession.follows(roots) || coming != nil && succession.follows(comingRoots)
    }

    init(decoding bytes: [UInt8]) throws(FormatError) {
        guard bytes.starts(with: Self.magic) else { throw .wrongMagic }
        var reader = ByteReader(bytes, in: Self.magic.count..<bytes.count)
        counter = try reader.integer(UInt64.self)
        epoch = try Epoch(&reader)
        sequence = try reader.integer(UInt64.self)
        head = try Digest(&reader)
        keybagGeneration = try reader.integer(UInt64.self)
        let numbers = [counter, sequence, keybagGeneration]
        guard numbers.allSatisfy({ $0 <= VaultFormat.largestSequence }) else { throw .outOfBounds }
        file = FileIdentity(
            device: try reader.integer(UInt64.self), inode: try reader.integer(UInt64.self))
        let coming = try Epoch(&reader)
        self.coming = coming.number == 0 ? nil : coming
        roots = try RootNames(&reader)
        comingRoots = try RootNames(&reader)
    }
}

extension RootNames {
    /// Appends both names; zeros stand for one that is not known.
    fileprivate func append(to writer: inout ByteWriter) {
        (all ?? .zero).append(to: &writer)
        (holder ?? .zero).append(to: &writer)
    }

    fileprivate init(_ reader: inout ByteReader) throws(FormatError) {
        func name() throws(FormatError) -> Name? {
            let name = try Name(&reader)
            return name == .zero ? nil : name
        }
        all = try name()
        holder = try name()
    }
}

extension Epoch {
    /// The epoch that stands for none: every epoch has a number from 1.
    fileprivate static let none = Epoch(number: 0, identifier: .zero)
}
