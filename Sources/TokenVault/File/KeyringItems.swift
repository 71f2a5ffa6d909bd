/// Where keys of vaults are kept for a person: their login keyring. One key for each vault, found by the
/// vault's identifier.
///
/// Every call is bounded in time and may block; call it where blocking is allowed. All throw `unavailable` when
/// there is no keyring, `locked` when it is locked and nobody unlocks it, and `timedOut`.
public protocol KeyringItems: Sendable {
    /// Keeps `key` for the vault with this identifier, in place of another one. `label` is for people.
    func store(_ key: Secret, vault: String, label: String) throws(TokenStorageError)

    /// The key kept for the vault; `nil` when there is none.
    func key(vault: String) throws(TokenStorageError) -> Secret?

    /// Deletes the key kept for the vault; says whether there was one.
    @discardableResult
    func delete(vault: String) throws(TokenStorageError) -> Bool
}
