internal import TokenVaultCore
internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// A commit of several changes, written down whole before any of them is made.
///
/// D-Bus has no transaction. The writer first makes one item with all changes: at that moment the commit
/// happens. Then the writer makes the changes and deletes the item. A reader that finds such an item finds a
/// commit whose writer is not done, or died. Readers answer from the item, and the next writer finishes the
/// commit.
struct CommitIntent: Sendable {
    /// What a key has after the commit.
    enum Outcome: Sendable {
        case stored(TokenItem)
        case deleted

        /// The item, if there is one.
        var item: TokenItem? { if case .stored(let item) = self { item } else { nil } }
    }

    let service: String
    let generation: Generation
    var outcomes: [(key: TokenKey, outcome: Outcome)] = []

    /// What the commit leaves under `key`; `nil` when it does not touch it.
    subscript(_ key: TokenKey) -> Outcome? { outcomes.first { $0.key == key }?.outcome }

    /// Whether `item` is at least as new as this commit. Then this commit made the item, or a later commit
    /// did and this intent is left over.
    func isOutdone(by item: TokenMetadata?) -> Bool {
        item.map { $0.generation >= generation } ?? false
    }

    // MARK: - In the keyring

    /// What one commit can change: the next writer finishes it within its own call when this one dies.
    static let mostChanges = 4_096
    static let schema = "org.tokenvault.Commit"
    private static let serviceName = "tokenvault:service"
    private static let version: UInt8 = 1

    /// What finds every commit under way.
    static var query: TokenAttributes { ["xdg:schema": schema] }

    /// What finds them also in a keyring that was not unlocked yet.
    static var queryOfLocked: TokenAttributes { ["tokenvault:commit": "1"] }

    /// What finds those of a service.
    static func query(service: String) -> TokenAttributes { [serviceName: WireName.encode(service)] }

    /// Whether an item with these attributes is a commit under way.
    static func isCommit(_ attributes: TokenAttributes) -> Bool { attributes.contains(query) }

    var attributes: TokenAttributes {
        var all = Self.query
        for (name, value) in Self.queryOfLocked { all[name] = value }
        all[Self.serviceName] = WireName.encode(service)
        all["tokenvault:generation"] = generation.description
        return all
    }

    /// The service whose commit has these attributes; `nil` when they do not say.
    static func service(in attributes: TokenAttributes?) -> String? {
        attributes?[serviceName].flatMap { WireName.name(in: $0) }
    }

    var label: String { "TokenVault is changing \(outcomes.count) items (generation \(generation))" }

    /// Everything as bytes: what is not secret, preceded by its length, then the secrets.
    func encode() -> SecretBytes {
        var header = ByteWriter(reserving: 256 * outcomes.count)
        header.append(Self.version)
        header.append(text: service)
        header.append(generation.rawValue)
        header.append(UInt32(outcomes.count))
        var secrets: [SecretBytes] = []
        for (key, outcome) in outcomes {
            header.append(text: key.name)
            guard case .stored(let item) = outcome else {
                header.append(UInt8(0))
                continue
            }
            header.append(UInt8(1))
            append(item.metadata, to: &header)
            header.append(UInt32(item.secret.count))
            secrets.append(item.secret.bytes)
        }
        var start = ByteWriter(reserving: header.bytes.count + 4)
        start.append(UInt32(header.bytes.count))
        start.append(header.bytes)
        let count = secrets.reduce(start.bytes.count) { $0 + $1.count }
        return unsafe SecretBytes(capacity: count) { target in
            unsafe target.copyBytes(from: start.bytes)
            var position = start.bytes.count
            for secret in secrets {
                unsafe secret.withUnsafeBytes { source in
                    unsafe UnsafeMutableRawBufferPointer(
                        rebasing: target[position..<position + source.count]
                    ).copyBytes(from: source)
                }
                position += secret.count
            }
            return count
        }
    }

    private func append(_ metadata: TokenMetadata, to header: inout ByteWriter) {
        header.append(UInt8(metadata.label == nil ? 0 : 1))
        header.append(text: metadata.label ?? "")
        header.append(text: metadata.policy.rawValue)
        header.append(Microseconds.of(metadata.created))
        header.append(UInt8(metadata.expires == nil ? 0 : 1))
        header.append(metadata.expires.map { Microseconds.of($0) } ?? 0)
        header.append(UInt16(metadata.attributes.count))
        for (name, value) in metadata.attributes {
            header.append(text: name)
            header.append(text: value)
        }
    }

    /// Reads what ``encode()`` wrote.
    init(decoding bytes: SecretBytes) throws(FormatError) {
        guard let prefix = bytes.slice(0..<4)?.array() else { throw .tooShort }
        var start = ByteReader(prefix)
        let length = Int(try start.integer(UInt32.self))
        guard let header = bytes.slice(4..<4 + length)?.array() else { throw .outOfBounds }
        var reader = ByteReader(header)
        guard try reader.integer(UInt8.self) == Self.version else { throw .newerVersion }
        service = try reader.text(limit: TokenKey.maximumLength)
        generation = Generation(rawValue: try reader.integer(UInt64.self))
        // Any program of the user can leave such an item, so its values are accepted within bounds only.
        guard NameRules.fits(service), generation.rawValue <= WallClock.microseconds + 86_400_000_000
        else { throw .outOfBounds }
        var position = 4 + length
        let count = try reader.integer(UInt32.self)
        guard count <= Self.mostChanges else { throw .outOfBounds }
        var keys: Set<TokenKey> = []
        for _ in 0..<count {
            let key = TokenKey(try reader.text(limit: TokenKey.maximumLength))
            guard NameRules.fits(key.name), keys.insert(key).inserted else { throw .outOfBounds }
            guard try reader.integer(UInt8.self) == 1 else {
                outcomes.append((key, .deleted))
                continue
            }
            let metadata = try Self.metadata(of: key, service, generation, &reader)
            let count = Int(try reader.integer(UInt32.self))
            guard count <= Secret.maximumLength, let secret = bytes.slice(position..<position + count)
            else { throw .outOfBounds }
            position += count
            outcomes.append((key, .stored(TokenItem(metadata: metadata, secret: Secret(secret)))))
        }
    }

    init(service: String, generation: Generation) {
        self.service = service
        self.generation = generation
    }

    private static func metadata(
        of key: TokenKey, _ service: String, _ generation: Generation, _ reader: inout ByteReader
    ) throws(FormatError) -> TokenMetadata {
        let hasLabel = try reader.integer(UInt8.self) == 1
        let label = try reader.text(limit: Validation.longestTexts)
        let policy = try reader.text(limit: Validation.longestTexts)
        let created = Microseconds.date(try reader.integer(Int64.self))
        let hasExpiry = try reader.integer(UInt8.self) == 1
        let expires = Microseconds.date(try reader.integer(Int64.self))
        var attributes = TokenAttributes()
        for _ in 0..<(try reader.integer(UInt16.self)) {
            let name = try reader.text(limit: Validation.longestTexts)
            attributes[name] = try reader.text(limit: Validation.longestTexts)
        }
        // Rejects metadata that a caller could not have given, or that a keyring does not keep.
        guard Bytes.areEqual(policy, AccessPolicy.whenUnlocked.rawValue),
            Bytes.areEqual(Validation.fitting(label: label), label),
            Validation.fitting(attributes: attributes) == attributes, Validation.isWritable(created),
            Validation.isWritable(expires)
        else { throw .outOfBounds }
        return TokenMetadata(
            key: key, service: service, policy: .whenUnlocked, label: hasLabel ? label : nil,
            attributes: attributes, created: created, modified: Microseconds.date(generation.rawValue),
            expires: hasExpiry ? expires : nil, generation: generation)
    }
}
