internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Writes an export file, one message at a time, with as much memory as its largest item needs.
struct ExportWriter {
    private let sink: ([UInt8]) throws(TokenStorageError) -> Void
    private let sealer: SecretStream.Sealer
    private let front: [UInt8]
    private var items: UInt64 = 0

    /// Begins the file. `sink` gets its bytes in order.
    init(
        passphrase: Secret, cost: PasswordHashCost, within limit: DerivationLimit,
        sink: @escaping ([UInt8]) throws(TokenStorageError) -> Void
    ) throws(TokenStorageError) {
        let salt = Random.bytes(PasswordHash.saltLength)
        let keys = try ExportKeys(
            passphrase: passphrase.spellings[0], salt: salt, cost: cost, within: limit)
        do { sealer = try SecretStream.Sealer(key: keys.stream) } catch { throw .crypto(error) }
        front = ExportHeader(
            cost: cost, salt: salt, commitment: keys.commitment, stream: sealer.header
        ).encoded()
        self.sink = sink
        try sink(front)
    }

    /// Adds an item.
    mutating func add(_ item: TokenItem) throws(TokenStorageError) {
        let metadata = item.metadata
        try write(
            .item(
                policy: metadata.policy.number,
                metadata: ItemCoding.metadata(
                    StoredMetadata(
                        metadata: metadata,
                        // The whole export is sealed: here the field only says the policy's origin.
                        policyProof: metadata.isPolicyFromLimitedSession
                            ? nil : [UInt8](repeating: 0, count: PolicyProof.length))),
                body: ItemCoding.body(item.secret)))
        items += 1
    }

    /// Ends the file.
    mutating func finish() throws(TokenStorageError) {
        try write(.end(items: items), isLast: true)
    }

    private func write(_ message: ExportMessage, isLast: Bool = false) throws(TokenStorageError) {
        let sealed = sealer.seal(message.encoded(), associatedData: front, isLast: isLast)
        var length = ByteWriter(reserving: 4)
        length.append(UInt32(sealed.count))
        try sink(length.bytes + sealed)
    }
}
