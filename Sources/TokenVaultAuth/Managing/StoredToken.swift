package import TokenVault

/// What is stored for an account, looked at without a manager: for programs that start for one token, and need neither tasks
/// nor threads while it is good.
package struct StoredToken: Sendable {
    /// The tokens.
    package let tokens: TokenInfo
    /// Which client of which provider they were given to; `nil` when whoever signed in did not say.
    package let source: TokenSource?
    /// Whether the access token is good for longer than the buffer: otherwise a ``TokenManager`` is to be asked.
    package let isFresh: Bool
    /// Whether it is still good, as far as its end tells.
    package let isUsable: Bool
    /// Whether a refresh was begun whose outcome is not stored: the server may have ended the token with it.
    package let mayBeOutdated: Bool

    /// What is stored for `account`. Throws `tokenNotFound`, `storage`, `unknownRecord`.
    package static func look(
        for account: String, in storage: any BlockingTokenStorage, configuration: TokenManager.Configuration
    ) throws(TokenError) -> StoredToken {
        let item: TokenItem?
        do throws(TokenStorageError) { item = try storage.item(for: SessionStore.key(of: account)) } catch {
            throw .storage(error)
        }
        guard let item else { throw .tokenNotFound }
        let record = try SessionStore.session(in: item).record
        guard !record.isWithoutTokens else { throw .tokenNotFound }
        let judgement = TokenExpiryPolicy(configuration, at: configuration.clock(), shift: 0)
        return StoredToken(
            tokens: record.tokens, source: record.source, isFresh: judgement.isFresh(record),
            isUsable: judgement.isUsable(record), mayBeOutdated: record.intent != nil)
    }
}
