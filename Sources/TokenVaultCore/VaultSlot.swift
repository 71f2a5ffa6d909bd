#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// An unlock method of a vault, without its secret.
public struct VaultSlot: Hashable, Sendable, Identifiable {
    /// The kind of an unlock method.
    public enum Kind: String, Hashable, Sendable {
        /// A passphrase.
        case passphrase
        /// A key file.
        case keyFile = "key-file"
        /// A key in the user's keyring, found there by the vault's identifier.
        case secretService = "secret-service"
        /// A recovery key.
        case recovery

        /// Whether the user has to type something; a key file or a keyring opens by itself.
        public var isAttended: Bool { self == .passphrase || self == .recovery }
    }

    /// The part of the items that a slot opens.
    public enum Scope: String, Hashable, Sendable {
        /// All items that its kind of method leads to.
        case all
        /// Only items readable after the first unlock: `afterFirstUnlock` and
        /// `afterFirstUnlockThisDeviceOnly` items.
        case afterFirstUnlock = "after-first-unlock"
    }

    /// The slot's number in its vault; not used again when the slot is removed.
    public let id: Int
    /// The kind of the slot's method.
    public let kind: Kind
    /// The part of the items that the slot opens.
    public let scope: Scope
    /// The date when the slot was made.
    public let created: Date
    /// The cost of deriving the passphrase's key; `nil` for other kinds. It may be less than
    /// ``KeyDerivationCost/minimum`` in a slot that another program made.
    public let cost: KeyDerivationCost?

    package init(id: Int, kind: Kind, scope: Scope, created: Date, cost: KeyDerivationCost?) {
        self.id = id
        self.kind = kind
        self.scope = scope
        self.created = created
        self.cost = cost
    }
}

/// The cost of deriving a key from a passphrase (Argon2id).
public struct KeyDerivationCost: Hashable, Sendable {
    /// Passes over the memory, 3 to 12.
    public var passes: Int
    /// Memory in bytes, 64 MiB to 2 GiB.
    public var memory: Int

    /// Creates a cost. Making a slot with a cost outside the bounds throws `invalidArgument`.
    public init(passes: Int, memory: Int) {
        self.passes = passes
        self.memory = memory
    }

    /// The least cost: 3 passes over 64 MiB.
    public static let minimum = KeyDerivationCost(passes: 3, memory: 64 << 20)
    /// libsodium's MODERATE: 3 passes over 256 MiB.
    public static let moderate = KeyDerivationCost(passes: 3, memory: 256 << 20)
}
