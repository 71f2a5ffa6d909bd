#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// One change of a commit: the action on a key, and the condition for the commit to happen.
public struct TokenChange: Sendable {
    /// The action of a change.
    public enum Action: Sendable {
        /// Stores a secret, replacing the stored one.
        case store(Secret)
        /// Changes details and keeps the secret. The key must be present.
        case update
        /// Deletes the item, if the key is present.
        case delete
        /// Gives the item another key, which must be free. The old key must be present.
        case rename(to: TokenKey)
    }

    /// The state that the key must have before the commit. Otherwise the storage rejects the whole commit
    /// with ``TokenStorageError/Code/conflict``.
    public enum Expectation: Hashable, Sendable {
        /// Any state.
        case any
        /// Nothing is stored under the key.
        case absent
        /// The item has this generation.
        case generation(Generation)
    }

    /// The key to change.
    public var key: TokenKey
    /// The action.
    public var action: Action
    /// Details to set. A detail that is not given keeps its value, or takes its default on a new item.
    public var details: TokenDetails
    /// The state that the key must have before the commit.
    public var expectation: Expectation

    /// Creates a change.
    public init(
        key: TokenKey, action: Action, details: TokenDetails = TokenDetails(),
        expectation: Expectation = .any
    ) {
        self.key = key
        self.action = action
        self.details = details
        self.expectation = expectation
    }

    /// Returns a change that stores `secret` under `key`.
    public static func store(
        _ secret: Secret, for key: TokenKey, details: TokenDetails = TokenDetails(),
        expecting expectation: Expectation = .any
    ) -> TokenChange {
        TokenChange(key: key, action: .store(secret), details: details, expectation: expectation)
    }

    /// Returns a change that sets details of `key` and keeps its secret.
    public static func update(
        _ key: TokenKey, details: TokenDetails, expecting expectation: Expectation = .any
    ) -> TokenChange {
        TokenChange(key: key, action: .update, details: details, expectation: expectation)
    }

    /// Returns a change that deletes `key`.
    public static func delete(_ key: TokenKey, expecting expectation: Expectation = .any) -> TokenChange {
        TokenChange(key: key, action: .delete, expectation: expectation)
    }

    /// Returns a change that gives the item at `key` the key `newKey`.
    public static func rename(
        _ key: TokenKey, to newKey: TokenKey, expecting expectation: Expectation = .any
    ) -> TokenChange {
        TokenChange(key: key, action: .rename(to: newKey), expectation: expectation)
    }
}

/// Details of an item to set. `nil` keeps the current value; on a new item it means the default.
public struct TokenDetails: Sendable {
    /// The policy. Default: the storage's ``TokenStorage/defaultPolicy``.
    public var policy: AccessPolicy?
    /// The label. An empty label removes it.
    public var label: String?
    /// The complete attributes. An empty set removes all attributes.
    public var attributes: TokenAttributes?
    /// The expiry.
    public var expiry: Expiry?

    /// The end of a secret's useful life.
    public enum Expiry: Hashable, Sendable {
        /// No end.
        case never
        /// At this time.
        case at(Date)
    }

    /// Creates details to set.
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
    /// Whether both set the same details. Texts compare by bytes of UTF-8.
    public static func == (left: Self, right: Self) -> Bool {
        left.policy == right.policy && Bytes.areEqual(left.label, right.label)
            && left.attributes == right.attributes && left.expiry == right.expiry
    }
}

/// The result of a commit.
public struct TokenCommit: Equatable, Sendable {
    /// The new generation of every changed key; `nil` when there was nothing to change (deletes of absent
    /// keys).
    public var generation: Generation?
    /// Whether the key of each change, in order, was present before the commit.
    public var existed: [Bool]
    /// The items that were replaced without a policy and got the default policy. A session without the root
    /// key had chosen the previous one (``TokenMetadata/isPolicyFromLimitedSession``). Usually empty; an
    /// agent reports the first 512.
    public var policyResets: [PolicyReset]

    /// Creates the result of a commit, for backends.
    public init(generation: Generation?, existed: [Bool], policyResets: [PolicyReset] = []) {
        self.generation = generation
        self.existed = existed
        self.policyResets = policyResets
    }
}

/// A replaced item with a policy from a session without the root key. The new value has the vault's default
/// policy instead.
public struct PolicyReset: Equatable, Sendable {
    /// The item's key.
    public var key: TokenKey
    /// The policy before the replace.
    public var from: AccessPolicy
    /// The vault's default policy, which is now the item's.
    public var to: AccessPolicy

    /// Creates a changed policy, for backends.
    public init(key: TokenKey, from: AccessPolicy, to: AccessPolicy) {
        self.key = key
        self.from = from
        self.to = to
    }
}
