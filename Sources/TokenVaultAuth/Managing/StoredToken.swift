package import TokenVault

/// What is stored for an account, looked at without a manager: for programs that start for one token, and need neither tasks
/// nor threads while it is good.
package enum StoredToken: Sendable {
    /// The access token is good for longer than the buffer.
    case fresh(TokenInfo)
    /// It is due, or over: ask a ``TokenManager``.
    case due(TokenInfo, isUsable: Bool)

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
        let judgement = TokenJudgement(configuration, at: configuration.clock(), shift: 0)
        if judgement.isFresh(record) { return .fresh(record.tokens) }
        return .due(record.tokens, isUsable: judgement.isUsable(record))
    }
}
