internal import TokenVaultCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// What the keyring says of one item of ours.
///
/// | where | what |
/// |---|---|
/// | attributes `xdg:schema`, `service`, `account` | whose it is; a person finds it by these (``WireName``) |
/// | attributes `tokenvault:…` | creation date, expiry, policy, encoding of the secret |
/// | other attributes | those of the caller |
/// | label | the caller's, or the key, and the generation |
///
/// The generation is not an attribute, since it changes with every store. The service takes an item with
/// other attributes for another item. The service also rewrites all of the keyring for each change.
struct KeyringItem: Sendable {
    let path: String
    var metadata: TokenMetadata
    /// How the secret is written; `nil` when a newer program wrote it.
    var encoding: WireEncoding?
    /// Whether its collection is locked.
    var isLocked: Bool
    /// Whether another program made it, for itself.
    let isOthers: Bool

    static let schema = "org.tokenvault.Token"
    private static let schemaName = "xdg:schema"
    private static let serviceName = "service"
    private static let accountName = "account"
    private static let own = "tokenvault:"
    private static let createdName = "tokenvault:created"
    private static let expiresName = "tokenvault:expires"
    private static let policyName = "tokenvault:policy"
    private static let encodingName = "tokenvault:encoding"
    // gnome-keyring shows the MD5 of each attribute of a keyring that was not unlocked yet.
    private static let hashed = "gkr:compat:hashed:"
    private static let hashedSchema = "920e8b4d907ceff837fb61a42bee4981"
    // Prefixes the caller's attribute names that have a meaning here, or for the service.
    private static let escape = "tokenvault:attribute:"

    // MARK: - Attributes

    /// A search for names in every keyring, and whose items it finds by them.
    struct Search {
        let query: TokenAttributes
        let findsOurs: Bool
        let findsOthers: Bool
    }

    /// The searches for the items of a service, or of one key of it. Other programs write each name as it is, so that
    /// one that ``WireName`` encodes takes a search of its own to find theirs.
    static func searches(service: String, key: TokenKey?, withOthers: Bool) -> [Search] {
        let ours = search(service: service, key: key)
        let others = names(service, key?.name)
        if ours == others { return [Search(query: ours, findsOurs: true, findsOthers: true)] }
        let searchForOurs = Search(query: ours, findsOurs: true, findsOthers: false)
        // D-Bus texts cannot contain U+0000, so no attribute has one.
        let isPossible = others.allSatisfy { !$0.value.utf8.contains(0) }
        guard withOthers, isPossible else { return [searchForOurs] }
        return [searchForOurs, Search(query: others, findsOurs: false, findsOthers: true)]
    }

    /// Finds the items of ours of a service, or of one key of it. A search for a schema finds nothing in a keyring of
    /// gnome-keyring that was not unlocked yet.
    static func search(service: String, key: TokenKey? = nil) -> TokenAttributes {
        names(WireName.encode(service), key.map { WireName.encode($0.name) })
    }

    private static func names(_ service: String, _ account: String?) -> TokenAttributes {
        var query = TokenAttributes()
        query[serviceName] = service
        if let account { query[accountName] = account }
        return query
    }

    /// What the attributes of an item of ours of that service and key contain.
    private static func query(service: String, key: TokenKey) -> TokenAttributes {
        var query = search(service: service, key: key)
        query[schemaName] = schema
        return query
    }

    /// What finds every item of every service.
    static var everyItem: TokenAttributes {
        var query = TokenAttributes()
        query[schemaName] = schema
        return query
    }

    /// What finds every item that this library wrote, also where ``everyItem`` does not: in a keyring that was
    /// not unlocked yet.
    static var everyWrittenItem: TokenAttributes { [policyName: AccessPolicy.whenUnlocked.rawValue] }

    /// The attributes of an item in the keyring.
    static func attributes(of metadata: TokenMetadata, encoding: WireEncoding) -> TokenAttributes {
        var all = query(service: metadata.service, key: metadata.key)
        all[createdName] = String(Microseconds.of(metadata.created))
        if let expires = metadata.expires { all[expiresName] = String(Microseconds.of(expires)) }
        all[policyName] = metadata.policy.rawValue
        if encoding != .text { all[encodingName] = encoding.rawValue }
        for (name, value) in metadata.attributes {
            let written = WireName.encode(name)
            all[isReserved(written) ? escape + written : written] = WireName.encode(value)
        }
        return all
    }

    private static func isReserved(_ name: String) -> Bool {
        let bytes = name.utf8
        return bytes.elementsEqual(serviceName.utf8) || bytes.elementsEqual(accountName.utf8)
            || [own, "xdg:", "gkr:"].contains { bytes.starts(with: $0.utf8) }
    }

    /// Whether `item` is of that service, and of that key if one is given: the service finds supersets too.
    static func isItem(_ item: KeyringItem, of service: String, _ key: TokenKey?) -> Bool {
        Bytes.areEqual(item.metadata.service, service) && (key == nil || key == item.metadata.key)
    }

    /// Returns the service and key of an item of ours with these attributes. Returns `nil` when another program made
    /// the item, or when no caller can give these names.
    static func name(in attributes: TokenAttributes) -> KeyringMemory.Name? {
        guard isOurs(attributes) else { return nil }
        return name(
            attributes[serviceName].flatMap { WireName.name(in: $0) },
            attributes[accountName].flatMap { WireName.name(in: $0) })
    }

    /// The names of an item with these attributes, whichever program made it; `nil` when they are no names that a
    /// caller can give. Other programs' names stay as they are written.
    static func anyName(in attributes: TokenAttributes) -> KeyringMemory.Name? {
        isOurs(attributes) ? name(in: attributes) : name(attributes[serviceName], attributes[accountName])
    }

    private static func name(_ service: String?, _ account: String?) -> KeyringMemory.Name? {
        guard let service, let account, NameRules.fits(service), NameRules.fits(account) else { return nil }
        return KeyringMemory.Name(service, TokenKey(account))
    }

    /// Whether an item with these attributes is one of ours.
    static func isOurs(_ attributes: TokenAttributes) -> Bool {
        Bytes.areEqual(attributes[schemaName], schema)
    }

    /// The service that attributes name, whatever else they are; `nil` when they name none.
    static func serviceName(in attributes: TokenAttributes) -> String? {
        let written = attributes[serviceName]
        return isOurs(attributes) ? written.flatMap { WireName.decode($0) } : written
    }

    /// The program that an item belongs to: a TokenVault, another one that gave it a service and an account, or
    /// another one that did not. It is unknown where the service does not show the schema.
    enum Owner { case ours, others, neither, unknown }

    /// The owner of an item with these attributes in a locked keyring.
    static func owner(ofLocked attributes: TokenAttributes?) -> Owner {
        guard let attributes else { return .unknown }
        if let schema = attributes[hashed + schemaName] {
            if Bytes.areEqual(schema, hashedSchema) { return .ours }
        } else if let schema = attributes[schemaName] {
            if Bytes.areEqual(schema, Self.schema) { return .ours }
        } else {
            return .unknown
        }
        let isNamed = [serviceName, accountName].allSatisfy {
            attributes[$0] != nil || attributes[hashed + $0] != nil
        }
        return isNamed ? .others : .neither
    }

    /// The collection of the item at `path`.
    static func collection(of path: String) -> String {
        String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)])
    }

    /// Whether attributes in the keyring are those of an item of that service and key: of ours, or of another program.
    static func areAttributes(
        _ attributes: TokenAttributes, of service: String, _ key: TokenKey, isOthers: Bool
    ) -> Bool {
        isOthers
            ? !isOurs(attributes) && attributes.contains(names(service, key.name))
            : attributes.contains(query(service: service, key: key))
    }

    /// The encoding that an item's attributes tell; `nil` when they tell of one, or of a policy, that a newer
    /// program keeps.
    static func encoding(in attributes: TokenAttributes) -> WireEncoding? {
        if let policy = attributes[policyName],
            !Bytes.areEqual(policy, AccessPolicy.whenUnlocked.rawValue)
        {
            return nil
        }
        guard let name = attributes[encodingName] else { return .text }
        return WireEncoding(rawValue: name)
    }

    /// Its attributes in the keyring; `nil` when a newer program wrote it.
    var attributes: TokenAttributes? {
        encoding.map { Self.attributes(of: metadata, encoding: $0) }
    }

    /// An item that was just written.
    init(path: String, metadata: TokenMetadata, encoding: WireEncoding) {
        self.path = path
        self.metadata = metadata
        self.encoding = encoding
        isLocked = false
        isOthers = false
    }

    // MARK: - Properties

    /// Reads the properties that the service gives for an item. Returns `nil` for an item without a service and an
    /// account that callers can give. Also returns `nil` for an item of another program, unless `orOthers` is set. What
    /// other programs wrote beyond the limits of callers is left out, or made fit.
    init?(path: String, properties: [String: Variant], orOthers: Bool = false) {
        guard let attributes = properties["Attributes"]?.attributes else { return nil }
        let isOthers = !Self.isOurs(attributes)
        guard orOthers || !isOthers, let name = Self.anyName(in: attributes) else { return nil }
        let changed = properties["Modified"]?.number ?? 0
        let label = ItemLabel(reading: properties["Label"]?.text ?? "", changed: changed)
        var others = TokenAttributes()
        for (name, value) in attributes {
            guard let value = isOthers ? value : WireName.decode(value) else { continue }
            if name.utf8.starts(with: Self.escape.utf8) {
                let written = String(decoding: name.utf8.dropFirst(Self.escape.utf8.count), as: UTF8.self)
                if let name = WireName.decode(written) { others[name] = value }
            } else if !Self.isReserved(name) {
                others[name] = value
            }
        }
        func date(_ name: String) -> Date? {
            attributes[name].flatMap { Int64($0) }.map { Microseconds.date($0) }
        }
        let created = date(Self.createdName).flatMap { Validation.isWritable($0) ? $0 : nil }
        let expires = date(Self.expiresName).flatMap { Validation.isWritable($0) ? $0 : nil }
        let modified = Microseconds.date(label.generation.rawValue)
        self.path = path
        self.isOthers = isOthers
        encoding = isOthers ? .text : Self.encoding(in: attributes)
        isLocked = properties["Locked"]?.bool ?? false
        metadata = TokenMetadata(
            key: name.key, service: name.service.name, policy: .whenUnlocked,
            label: label.text.map { Validation.fitting(label: $0) },
            attributes: Validation.fitting(attributes: others), created: created ?? modified,
            modified: modified, expires: expires, generation: label.generation)
    }
}

/// The clock that generations are taken from.
enum WallClock {
    /// Microseconds since 1970.
    static var microseconds: UInt64 { UInt64(max(0, Microseconds.of(Date()))) }
    /// Seconds since 1970.
    static var seconds: UInt64 { microseconds / 1_000_000 }
}

/// Dates as whole microseconds since 1970, which a `Date` gives back exactly for some centuries.
enum Microseconds {
    static func of(_ date: Date) -> Int64 {
        Int64(exactly: (date.timeIntervalSince1970 * 1e6).rounded()) ?? 0
    }
    static func date(_ microseconds: some BinaryInteger) -> Date {
        Date(timeIntervalSince1970: Double(microseconds) / 1e6)
    }
}
