/// The user's login keyring, which keeps keys of vaults. A vault has a key there for each of its slots that
/// the keyring opens, found by the vault's identifier.
///
/// Every call is bounded in time and may block; call it where blocking is allowed. All calls throw
/// `unavailable` when there is no keyring, `locked` when the keyring is locked and stays locked, and
/// `timedOut`.
public protocol KeyringItems: Sendable {
    /// Stores `key` for the vault with this identifier under a name that is not taken. `label` is shown to
    /// users. Throws `conflict` when the name is taken.
    func add(_ key: Secret, vault: String, name: String, label: String) throws(TokenStorageError)

    /// Returns the keys stored for the vault, by name; empty when there are none. Other programs may have
    /// added keys: a key counts only for the slots that it opens.
    func keys(vault: String) throws(TokenStorageError) -> [String: Secret]

    /// Deletes the key of that name; returns whether there was one.
    @discardableResult
    func delete(vault: String, name: String) throws(TokenStorageError) -> Bool
}
