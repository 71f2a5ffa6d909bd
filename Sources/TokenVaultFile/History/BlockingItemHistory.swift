package import TokenVaultCore

/// A storage that still has replaced values.
package protocol BlockingItemHistory: BlockingTokenStorage {
    /// Returns the values of `key`, newest first: ``FileTokenStorage/Blocking/history(of:)``.
    func history(of key: TokenKey) throws(TokenStorageError) -> TokenListing
    /// Stores an earlier value again: ``FileTokenStorage/Blocking/undo(_:to:)``.
    @discardableResult
    func undo(_ key: TokenKey, to generation: Generation?) throws(TokenStorageError) -> TokenCommit
}
