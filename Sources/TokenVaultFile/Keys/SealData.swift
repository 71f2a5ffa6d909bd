internal import TokenVaultCore

/// The data that the seals of one class's items are bound to, for one item after the other.
struct SealData: Sendable {
    private(set) var bytes: [UInt8]
    private let place: Int

    /// Creates the data of a class's seals. They name no item yet.
    init(
        _ purpose: Purpose, vault: VaultIdentifier, policy: AccessPolicy, version: UInt32, setTag: UInt64
    ) {
        var writer = ByteWriter(reserving: 96)
        writer.append(Array(purpose.rawValue.utf8))
        writer.append(UInt8(0))
        writer.append(vault.bytes)
        place = writer.bytes.count
        ItemIdentifier.none.append(to: &writer)
        writer.append(policy.number)
        writer.append(version)
        writer.append(setTag)
        writer.append(UInt64(0))
        writer.append(UInt64(0))
        bytes = writer.bytes
    }

    /// The purpose of a seal, which begins the data.
    enum Purpose: String {
        case itemMetadata = "tokenvault 1 item metadata"
        case itemBody = "tokenvault 1 item body"
        case deletionMetadata = "tokenvault 1 deletion metadata"
    }

    /// Sets the item, its generation and the value's tag.
    mutating func name(_ item: ItemIdentifier, _ generation: UInt64, _ valueTag: UInt64) {
        bytes.put(item.high, at: place)
        bytes.put(item.low, at: place + 8)
        bytes.put(generation, at: bytes.count - 16)
        bytes.put(valueTag, at: bytes.count - 8)
    }

    /// Returns the data of one seal.
    func bytes(_ item: ItemIdentifier, _ generation: UInt64, valueTag: UInt64) -> [UInt8] {
        var data = self
        data.name(item, generation, valueTag)
        return data.bytes
    }
}
