#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// Everything about an item except its secret.
public struct TokenMetadata: Sendable {
    /// The item's key within its service.
    public var key: TokenKey
    /// The service the item belongs to.
    public var service: String
    /// The conditions under which the item can be read.
    public var policy: AccessPolicy
    /// A text for display; `nil` when none was given.
    public var label: String?
    /// Attributes for searching.
    public var attributes: TokenAttributes
    /// The time at which the key was first stored. A replace keeps it.
    public var created: Date
    /// The time of the item's last change.
    public var modified: Date
    /// The time at which the secret expires; `nil` for never. A storage reports it and never acts on it.
    public var expires: Date?
    /// The generation of the commit that last changed the item.
    public var generation: Generation
    /// Whether a session without the root key chose the policy. Such a session has a slot of limited scope or
    /// a locked agent.
    ///
    /// A later replace that names no policy may then reset it. In an unlocked session of scope *all* the item
    /// gets the vault's default policy (``TokenCommit/policyResets``).
    ///
    /// Only the file vault has a proof of this; elsewhere the value is false. A session without the root key
    /// sees that the proof is missing, but cannot check a proof that is present.
    public var isPolicyFromLimitedSession: Bool

    /// Creates the metadata of an item, for backends.
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

    /// Returns whether the item has expired at `date`: `expires` is not after it.
    public func isExpired(at date: Date) -> Bool { expires.map { $0 <= date } ?? false }
}

extension TokenMetadata: Equatable {
    /// Whether both are equal. Texts compare by bytes of UTF-8.
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
    /// Everything except the secret.
    public var metadata: TokenMetadata
    /// The secret.
    public var secret: Secret

    /// Creates an item, for backends.
    public init(metadata: TokenMetadata, secret: Secret) {
        self.metadata = metadata
        self.secret = secret
    }
}

/// A filter for listing. An empty query matches all items of a service.
public struct TokenQuery: Sendable {
    /// The beginning of the UTF-8 bytes of a matching key.
    public var prefix: String
    /// The attributes that a matching item has, all of them.
    public var attributes: TokenAttributes

    /// Creates a query for keys that begin with `prefix` and have `attributes`.
    public init(prefix: String = "", attributes: TokenAttributes = [:]) {
        self.prefix = prefix
        self.attributes = attributes
    }

    /// The query that matches every item.
    public static let all = TokenQuery()

    /// Returns whether the query matches an item.
    public func matches(_ metadata: TokenMetadata) -> Bool {
        metadata.key.name.utf8.starts(with: prefix.utf8) && metadata.attributes.contains(attributes)
    }
}

extension TokenQuery: Equatable {
    /// Whether both match the same items. Texts compare by bytes of UTF-8.
    public static func == (left: Self, right: Self) -> Bool {
        Bytes.areEqual(left.prefix, right.prefix) && left.attributes == right.attributes
    }
}

/// The result of listing.
public struct TokenListing: Equatable, Sendable {
    /// The items that can be shown, in the order of their keys' bytes.
    public var items: [TokenMetadata]
    /// The number of items of the service that cannot be shown now, whatever the query. Their names are
    /// hidden because the vault is locked, because the unlock method does not open them, or because they
    /// belong to another device.
    public var hidden: Int
    /// The number of hidden items by the error that reading them would throw: `locked`, `wrongDevice`,
    /// `notPermitted` … Incomplete where the backend does not report the reasons.
    public var hiddenReasons: [TokenStorageError.Code: Int]
    /// The number of items of other programs that were examined and are not among ``items``: see
    /// ``SecretServiceConfiguration/readsOtherPrograms``.
    public var passedOver: Int
    /// The keys of those ``items`` that other programs made.
    package var keysOfOthers: Set<TokenKey> = []

    /// Creates a listing, for backends.
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
