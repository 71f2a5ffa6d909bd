/// The store of an auth SDK that runs on Linux and on Apple's platforms. The rest of the SDK knows this
/// protocol alone, and no module of a platform.
///
/// A read has three outcomes: a token, `nil` for an account that is known to have none, or a thrown error.
/// *A locked or broken store never reads as absent.* A token is readable while the store is unlocked, on
/// this device only.
public protocol AuthTokenStore: Sendable {
    /// Stores `token` for `account`, replacing the stored token. Throws `locked`, `failed`.
    func store(_ token: String, for account: String) async throws(AuthTokenStoreError)

    /// Returns the token of `account`, or `nil` when the account is known to have none. Throws `locked`,
    /// `failed`.
    func retrieve(for account: String) async throws(AuthTokenStoreError) -> String?

    /// Deletes the token of `account`, if there is one. Throws `locked`, `failed`.
    func delete(for account: String) async throws(AuthTokenStoreError)
}

/// The reason for a failed call. An absent token is no failure: a read returns `nil` for it.
public enum AuthTokenStoreError: Error, Equatable, Sendable {
    /// The store is locked and may have the token. Ask for the unlock, and try again.
    case locked
    /// The store cannot be used for another reason and may have the token. The text is for a log or the user:
    /// it has no token and no account.
    case failed(String)
}
