internal import TokenVaultCore
internal import TokenVaultCrypto

/// The front of an export file: the parameters for deriving a key from its passphrase.
struct ExportHeader: Equatable {
    static let magic = Array("TVEXPORT".utf8)
    static let version: UInt16 = 1
    /// The length of the front, in bytes.
    static let length = 96

    var cost: PasswordHashCost
    var salt: [UInt8]
    var commitment: [UInt8]
    var stream: [UInt8]

    init(cost: PasswordHashCost, salt: [UInt8], commitment: [UInt8], stream: [UInt8]) {
        self.cost = cost
        self.salt = salt
        self.commitment = commitment
        self.stream = stream
    }

    init(decoding bytes: [UInt8]) throws(FormatError) {
        var reader = ByteReader(bytes)
        guard try reader.bytes(Self.magic.count) == Self.magic else { throw .wrongMagic }
        guard try reader.integer(UInt16.self) == Self.version, try reader.integer(UInt16.self) == 0 else {
            throw .newerVersion
        }
        cost = PasswordHashCost(
            passes: try reader.integer(UInt32.self), memory: try reader.integer(UInt64.self))
        // A file cannot ask for hours, and this project never writes a cheaper cost.
        guard (PasswordHashCost.minimum.passes...PasswordHashCost.maximum.passes).contains(cost.passes),
            (PasswordHashCost.minimum.memory...PasswordHashCost.maximum.memory).contains(cost.memory)
        else { throw .outOfBounds }
        salt = try reader.bytes(PasswordHash.saltLength)
        commitment = try reader.bytes(32)
        stream = try reader.bytes(SecretStream.headerLength)
    }

    func encoded() -> [UInt8] {
        var writer = ByteWriter(reserving: Self.length)
        writer.append(Self.magic)
        writer.append(Self.version)
        writer.append(UInt16(0))
        writer.append(cost.passes)
        writer.append(cost.memory)
        writer.append(salt)
        writer.append(commitment)
        writer.append(stream)
        return writer.bytes
    }
}

/// A message of an export file, before it is sealed.
enum ExportMessage {
    /// An item: its policy's number, the plaintext of its metadata and of its body.
    case item(policy: UInt8, metadata: [UInt8], body: SecretBytes)
    /// The last message: the number of items.
    case end(items: UInt64)

    /// The longest sealed message, in bytes: names and details, and a secret of 1 MiB with its padding.
    static let longest = 2 << 20
    private static let frontLength = 8

    init(decoding message: SecretBytes) throws(FormatError) {
        guard let front = message.slice(0..<min(message.count, Self.frontLength))?.array() else {
            throw .tooShort
        }
        var reader = ByteReader(front)
        let kind = try reader.integer(UInt8.self)
        let policy = try reader.integer(UInt8.self)
        guard try reader.integer(UInt16.self) == 0 else { throw .outOfBounds }
        let count = Int(try reader.integer(UInt32.self))
        switch kind {
        case 1:
            let start = Self.frontLength
            guard count <= message.count - start else { throw .tooShort }
            guard let metadata = message.slice(start..<start + count),
                let body = message.slice(start + count..<message.count)
            else { throw .tooShort }
            self = .item(policy: policy, metadata: metadata.array(), body: body)
        case 2:
            guard policy == 0, count == 8,
                let rest = message.slice(Self.frontLength..<message.count)?.array(),
                rest.count == 8
            else { throw .outOfBounds }
            var reader = ByteReader(rest)
            self = .end(items: try reader.integer(UInt64.self))
        default: throw .outOfBounds
        }
    }

    func encoded() -> SecretBytes {
        var writer = ByteWriter(reserving: 512)
        switch self {
        case .item(let policy, let metadata, let body):
            writer.append(UInt8(1))
            writer.append(policy)
            writer.append(UInt16(0))
            writer.append(UInt32(metadata.count))
            writer.append(metadata)
            return SecretBytes(joining: writer.bytes, body)
        case .end(let items):
            writer.append(UInt8(2))
            writer.append(UInt8(0))
            writer.append(UInt16(0))
            writer.append(UInt32(8))
            writer.append(items)
            return SecretBytes(copying: writer.bytes)
        }
    }
}
