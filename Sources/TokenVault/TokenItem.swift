#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// Everything about an item but its secret.
public struct TokenMetadata: Sendable {
    /// The item's key within its service.
    public var key: TokenKey
    /// The service the item belongs to.
    public var service: String
    /// When and where the item can be read.
    public var policy: AccessPolicy
    /// A text for people; `nil` when none was given.
    public var label: String?
    /// Attributes for searching.
    public var attributes: TokenAttributes
    /// When the key was first stored. A replace keeps it.
    public var created: Date
    /// When the item last changed.
    public var modified: Date
    /// When the secret stops being of use; `nil` for never. Storage tells it and never acts on it.
    public var expires: Date?
    /// The commit that last changed the item.
    public var generation: Generation
    /// Whether a session without the root key chose the policy: one with a slot of limited scope, or a locked agent.
    /// A replace in an unlocked session of scope *all* that names no policy uses the vault's default policy then
    /// (``TokenCommit/policyResets``). Only the file vault proves it; elsewhere false. A session without the root key sees
    /// that no proof is there, and cannot check one that is.
    public var isPolicyFromLimitedSession: Bool

    /// A description of an item. Backends make these.
    public init(
        key: TokenKey, service: String, policy: AccessPolicy, label: String? = nil,
        attributes: TokenAttributes = [:], created: Date, modified: Date, expires: Date? = nil,
        generation: Generation, isPolicyFromLimitedSession: Bool = false
    ) {
        self.key = key
        self.service = service
        self.policy = policy
        self.label = label
        self.attributes = attributes
        self.created = created
        self.modified = modified
        self.expires = expires
        self.generation = generation
        self.isPolicyFromLimitedSession = isPolicyFromLimitedSession
    }

    /// Whether `expires` is not after `date`.
    public func isExpired(at date: Date) -> Bool { expires.map { $0 <= date } ?? false }
}

extension TokenMetadata: Equatable {
    /// Whether both say the same; texts compare by bytes of UTF-8.
    public static func == (left: Self, right: Self) -> Bool {
        left.key == right.key && left.generation == right.generation && left.policy == right.policy
            && Bytes.areEqual(left.service, right.service) && Bytes.areEqual(left.label, right.label)
            && left.attributes == right.attributes && left.created == right.created
            && left.modified == right.modified && left.expires == right.expires
            && left.isPolicyFromLimitedSession == right.isPolicyFromLimitedSession
    }
}

/// An item: its secret and everything about it.
public struct TokenItem: Equatable, Sendable {
    /// Everything but the secret.
    public var metadata: TokenMetadata
    /// The secret.
    public var secret: Secret

    /// An item. Backends make these.
    public init(metadata: TokenMetadata, secret: Secret) {
        self.metadata = metadata
        self.secret = secret
    }
}

/// Which items to list. An empty query lists all of a service.
public struct TokenQuery: Sendable {
    /// Only keys whose UTF-8 bytes begin with this.
    public var prefix: String
    /// Only items that have all of these attributes.
    public var attributes: TokenAttributes

    /// A query for keys that begin with `prefix` and have `attributes`.
    public init(prefix: String = "", attributes: TokenAttributes = [:]) {
        self.prefix = prefix
        self.attributes = attributes
    }

    /// Every item.
    public static let all = TokenQuery()

    /// Whether an item answers the query.
    public func matches(_ metadata: TokenMetadata) -> Bool {
        metadata.key.name.utf8.starts(with: prefix.utf8) && metadata.attributes.contains(attributes)
    }
}

extension TokenQuery: Equatable {
    /// Whether both ask for the same, by bytes of UTF-8.
    public static func == (left: Self, right: Self) -> Bool {
        Bytes.areEqual(left.prefix, right.prefix) && left.attributes == right.attributes
    }
}

/// What a list may show.
public struct TokenListing: Equatable, Sendable {
    /// The items that can be shown, in the order of their keys' bytes.
    public var items: [TokenMetadata]
    /// How many items of the service cannot be shown now, whatever the query: their names are dark
    /// because the vault is locked or was unlocked with what does not lead to them, or they belong to another
    /// device.
    public var hidden: Int
    /// Why, as far as the backend tells: how many would be refused with `locked`, `wrongDevice`,
    /// `notPermitted` … when they were read.
    public var hiddenReasons: [TokenStorageError.Code: Int]
    /// How many items of other programs were looked at and are not among ``items``: see
    /// ``SecretServiceConfiguration/readsOtherPrograms``.
    public var passedOver: Int
    /// The keys of ``items`` that other programs made.
    var keysOfOthers: Set<TokenKey> = []

    /// A listing. Backends make these.
    public init(
        items: [TokenMetadata], hidden: Int = 0, hiddenReasons: [TokenStorageError.Code: Int] = [:],
        passedOver: Int = 0
    ) {
        self.items = items
        self.hidden = hidden
        self.hiddenReasons = hiddenReasons
        self.passedOver = passedOver
    }
}
