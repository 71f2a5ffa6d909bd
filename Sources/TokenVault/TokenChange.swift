#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// One change of a commit: what to do to a key, and what must be true of it for the commit to happen.
public struct TokenChange: Sendable {
    /// What to do.
    public enum Action: Sendable {
        /// Stores a secret, replacing the one that is there.
        case store(Secret)
        /// Changes details and keeps the secret. The key must be there.
        case update
        /// Deletes the item; nothing happens when it is not there.
        case delete
        /// Gives the item another key, which must be free. The key must be there.
        case rename(to: TokenKey)
    }

    /// What must be true of the key before the commit; otherwise the whole commit is refused with
    /// ``TokenStorageError/Code/conflict``.
    public enum Expectation: Hashable, Sendable {
        /// Anything.
        case any
        /// Nothing is stored under the key.
        case absent
        /// The item has this generation.
        case generation(Generation)
    }

    /// The key to change.
    public var key: TokenKey
    /// What to do.
    public var action: Action
    /// Details to set; what is not given is kept, or takes its default on a new item.
    public var details: TokenDetails
    /// What must be true before.
    public var expectation: Expectation

    /// A change.
    public init(
        key: TokenKey, action: Action, details: TokenDetails = TokenDetails(),
        expectation: Expectation = .any
    ) {
        self.key = key
        self.action = action
        self.details = details
        self.expectation = expectation
    }

    /// Stores `secret` under `key`.
    public static func store(
        _ secret: Secret, for key: TokenKey, details: TokenDetails = TokenDetails(),
        expecting expectation: Expectation = .any
    ) -> TokenChange {
        TokenChange(key: key, action: .store(secret), details: details, expectation: expectation)
    }

    /// Changes the details of `key` and keeps its secret.
    public static func update(
        _ key: TokenKey, details: TokenDetails, expecting expectation: Expectation = .any
    ) -> TokenChange {
        TokenChange(key: key, action: .update, details: details, expectation: expectation)
    }

    /// Deletes `key`.
    public static func delete(_ key: TokenKey, expecting expectation: Expectation = .any) -> TokenChange {
        TokenChange(key: key, action: .delete, expectation: expectation)
    }

    /// Gives the item at `key` the key `newKey`.
    public static func rename(
        _ key: TokenKey, to newKey: TokenKey, expecting expectation: Expectation = .any
    ) -> TokenChange {
        TokenChange(key: key, action: .rename(to: newKey), expectation: expectation)
    }
}

/// Details of an item to set. `nil` keeps what is there; on a new item it means the default.
public struct TokenDetails: Sendable {
    /// The policy. Default: the storage's ``TokenStorage/defaultPolicy``.
    public var policy: AccessPolicy?
    /// The label; an empty one removes it.
    public var label: String?
    /// The attributes, all of them; an empty set removes them.
    public var attributes: TokenAttributes?
    /// The expiry.
    public var expiry: Expiry?

    /// When a secret stops being of use.
    public enum Expiry: Hashable, Sendable {
        /// It does not.
        case never
        /// At this time.
        case at(Date)
    }

    /// Details to set.
    public init(
        policy: AccessPolicy? = nil, label: String? = nil, attributes: TokenAttributes? = nil,
        expiry: Expiry? = nil
    ) {
        self.policy = policy
        self.label = label
        self.attributes = attributes
        self.expiry = expiry
    }
}

extension TokenDetails: Equatable {
    /// Whether both set the same; texts compare by bytes of UTF-8.
    public static func == (left: Self, right: Self) -> Bool {
        left.policy == right.policy && Bytes.areEqual(left.label, right.label)
            && left.attributes == right.attributes && left.expiry == right.expiry
    }
}

/// What a commit did.
public struct TokenCommit: Equatable, Sendable {
    /// The generation that every changed key has now; `nil` when there was nothing to change (a delete
    /// of what is not there).
    public var generation: Generation?
    /// For each change in order, whether its key was there before the commit.
    public var existed: [Bool]
    /// The items that were replaced without a policy and lost theirs, because a session without the root key had
    /// chosen it (``TokenMetadata/isPolicyFromLimitedSession``). Usually empty; an agent tells of the first 512.
    public var policyResets: [PolicyReset]

    /// The outcome of a commit. Backends make these.
    public init(generation: Generation?, existed: [Bool], policyResets: [PolicyReset] = []) {
        self.generation = generation
        self.existed = existed
        self.policyResets = policyResets
    }
}

/// A replaced item whose policy a session without the root key had chosen: the new value is under the vault's default
/// policy instead.
public struct PolicyReset: Equatable, Sendable {
    /// The item's key.
    public var key: TokenKey
    /// The policy before the replace.
    public var from: AccessPolicy
    /// The vault's default policy, which the item has now.
    public var to: AccessPolicy

    /// A changed policy. Backends make these.
    public init(key: TokenKey, from: AccessPolicy, to: AccessPolicy) {
        self.key = key
        self.from = from
        self.to = to
    }
}
