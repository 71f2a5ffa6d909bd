import Shapes
import TokenVault

/// Okta's tokens in a vault. What belongs together is one commit: no crash leaves a token without its metadata, and a
/// replaced token is never gone in between.
@CredentialActor final class OktaVaultStorage: OktaTokenStorage {
    private let storage: any BlockingTokenStorage
    weak var delegate: (any OktaTokenStorageDelegate)?

    init(storage: any BlockingTokenStorage) { self.storage = storage }

    private func key(token id: String) -> TokenKey { "token/\(id)" }
    private func key(metadata id: String) -> TokenKey { "metadata/\(id)" }

    var defaultTokenID: String? { try? storage.retrieve(for: "default") }

    func setDefaultTokenID(_ id: String?) throws {
        if let id { try storage.store(token: id, for: "default") } else { try storage.delete(for: "default") }
        delegate?.token(defaultChanged: id)
    }

    var allIDs: [String] {
        let items = (try? storage.list(TokenQuery(prefix: "token/")))?.items ?? []
        return items.map { String($0.key.name.dropFirst("token/".count)) }
    }

    func add(token: OktaToken, metadata: OktaTokenMetadata?, security: [String]) throws {
        try storage.commit([
            .store(try Secret(encoding: token), for: key(token: token.id), expecting: .absent),
            .store(
                try Secret(encoding: metadata ?? OktaTokenMetadata(id: token.id)),
                for: key(metadata: token.id)),
        ])
        delegate?.token(added: token.id)
    }

    func setMetadata(_ metadata: OktaTokenMetadata) throws {
        try storage.store(encoding: metadata, for: key(metadata: metadata.id))
    }

    func metadata(for id: String) throws -> OktaTokenMetadata {
        guard let metadata = try storage.retrieve(OktaTokenMetadata.self, for: key(metadata: id)) else {
            throw NoEntry()
        }
        return metadata
    }

    func replace(token id: String, with token: OktaToken, security: [String]) throws {
        guard let current = try storage.metadata(for: key(token: id)) else { throw NoEntry() }
        try storage.compareAndStore(
            try Secret(encoding: token), for: key(token: id), expected: current.generation)
        delegate?.token(replaced: id)
    }

    func remove(id: String) throws {
        try storage.commit([.delete(key(token: id)), .delete(key(metadata: id))])
        delegate?.token(removed: id)
    }

    func get(token id: String, prompt: String?, authenticationContext: (any Sendable)?) throws -> OktaToken {
        guard let token = try storage.retrieve(OktaToken.self, for: key(token: id)) else { throw NoEntry() }
        return token
    }
}
