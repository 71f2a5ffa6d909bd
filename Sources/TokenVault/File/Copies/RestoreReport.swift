public import SystemPackage

/// What putting a copy in a vault's place did.
public struct RestoreReport: Sendable {
    /// Items that the vault has now.
    public var items: Int
    /// Where what was in the vault's place is kept; `nil` when nothing was, or the copy itself.
    public var replaced: FilePath?
    /// The same vault at another path, which is a stale copy from now on; only ``VaultCopy/adopt(progress:)`` leaves
    /// one.
    public var staleCopy: FilePath?
    /// What a person should know: a damaged copy of the keybag that was left behind, for example.
    public var notes: [String]
}
