package import TokenVault

/// The stored tokens of an account, read without a manager. For programs that start for one token, and need
/// neither tasks nor threads while the token is good.
package struct StoredToken: Sendable {
    /// The tokens.
    package let tokens: TokenInfo
    /// The provider and the client that the tokens were issued to; `nil` when the sign-in did not say.
    package let source: TokenSource?
    /// Whether the access token is good for longer than the buffer. Otherwise the program asks a
    /// ``TokenManager``.
    package let isFresh: Bool
    /// Whether the access token has not expired, judged by its stored expiry.
    package let isUsable: Bool
    /// Whether a refresh was begun whose outcome is not stored: the server may have invalidated the token.
    package let mayBeOutdated: Bool
    /// The record that was read.
    let record: SessionRecord

    /// Returns the stored tokens of `account`. Throws `tokenNotFound`, `storage`, `unknownRecord`.
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
            isUsable: judgement.isUsable(record), mayBeOutdated: record.intent != nil, record: record)
    }
}
