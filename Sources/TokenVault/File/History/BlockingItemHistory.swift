/// A storage that still has replaced values.
package protocol BlockingItemHistory: BlockingTokenStorage {
    /// See ``FileTokenStorage/Blocking/history(of:)``.
    func history(of key: TokenKey) throws(TokenStorageError) -> TokenListing
    /// See ``FileTokenStorage/Blocking/undo(_:to:)``.
    @discardableResult
    func undo(_ key: TokenKey, to generation: Generation?) throws(TokenStorageError) -> TokenCommit
}
