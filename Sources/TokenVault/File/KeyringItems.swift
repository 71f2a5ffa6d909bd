/// Where keys of vaults are kept for a person: their login keyring. A vault has a key there for each of its slots
/// that the keyring opens, found by the vault's identifier.
///
/// Every call is bounded in time and may block; call it where blocking is allowed. All throw `unavailable` when
/// there is no keyring, `locked` when it is locked and nobody unlocks it, and `timedOut`.
public protocol KeyringItems: Sendable {
    /// Keeps `key` for the vault with this identifier under a name that is not taken. `label` is for people.
    /// Throws `conflict` when the name is taken.
    func add(_ key: Secret, vault: String, name: String, label: String) throws(TokenStorageError)

    /// The keys kept for the vault, by name; empty when there are none. Other programs can have added some: a
    /// key counts for what it opens.
    func keys(vault: String) throws(TokenStorageError) -> [String: Secret]

    /// Deletes the key of that name; says whether there was one.
    @discardableResult
    func delete(vault: String, name: String) throws(TokenStorageError) -> Bool
}
