public import SystemPackage

/// What merging a copy into the vault did, or would do.
public struct MergeReport: Sendable {
    /// An item that both files have changed.
    public struct Conflict: Sendable, Hashable {
        /// The item's service.
        public let service: String
        /// The item's key, which has the vault's value.
        public let key: TokenKey
        /// The key that has the copy's value.
        public let keptAs: TokenKey
    }

    /// Items that the vault has now, or would have.
    public var items = 0
    /// Items that were new or newer in the copy.
    public var taken = 0
    /// Items that the copy had deleted.
    public var deleted = 0
    /// Items that both have changed, in the order of the copy's file.
    public var conflicts: [Conflict] = []
    /// Items of the copy that could not be taken: this device or this unlock method does not open them.
    public var remaining = 0
    /// Whether the vault has all of the copy already. Then nothing was written.
    public var isUpToDate = false
    /// Where the vault's file of before is kept; `nil` when nothing was written.
    public var replaced: FilePath?
    /// What a person should know.
    public var notes: [String] = []
}
