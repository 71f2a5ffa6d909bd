public import SystemPackage

/// The result of putting a copy in a vault's place.
public struct RestoreReport: Sendable {
    /// The number of items that the vault has now.
    public var items: Int
    /// The path where the replaced file is kept; `nil` when there was none, or it was the copy itself.
    public var replaced: FilePath?
    /// The path of the same vault's other file, which is a stale copy from now on. Only
    /// ``VaultCopy/adopt(progress:)`` leaves one.
    public var staleCopy: FilePath?
    /// Notes for the user: a damaged copy of the keybag that was left behind, for example.
    public var notes: [String]
}
