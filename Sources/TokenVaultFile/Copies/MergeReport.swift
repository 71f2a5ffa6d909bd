public import SystemPackage
public import TokenVaultCore

/// The result of merging a copy into the vault, or of a rehearsal.
public struct MergeReport: Sendable {
    /// An item that both files have changed.
    public struct Conflict: Sendable, Hashable {
        /// The item's service.
        public let service: String
        /// The item's key, which has the vault's value, or the copy's with ``isVaultsValueMoved``.
        public let key: TokenKey
        /// The key that has the other value.
        public let keptAs: TokenKey
        /// Whether the copy's value kept the item's key: it is another device's, so it cannot be renamed here.
        public let isVaultsValueMoved: Bool
    }

    /// An item's service and key.
    public struct Name: Sendable, Hashable {
        /// The item's service.
        public let service: String
        /// The item's key.
        public let key: TokenKey
    }

    /// The number of items that the vault has now, or would have.
    public var items = 0
    /// The number of items that were new or newer in the copy.
    public var taken = 0
    /// The number of items that the copy had deleted.
    public var deleted = 0
    /// The names of the items taken, as far as this unlock method opens them.
    public var takenNames: [Name] = []
    /// The names of the items deleted, as far as this unlock method opens them.
    public var deletedNames: [Name] = []
    /// The items that both files have changed, in the order of the copy's file.
    public var conflicts: [Conflict] = []
    /// The number of the copy's items that could not be taken: this device or this unlock method does not
    /// open them.
    public var remaining = 0
    /// Whether the vault has all of the copy already, except for the items in ``remaining``. Then nothing was
    /// written.
    public var isUpToDate = false
    /// The path where the vault's previous file is kept; `nil` when nothing was written.
    public var replaced: FilePath?
    /// Notes for the user.
    public var notes: [String] = []
}
