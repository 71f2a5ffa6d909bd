import Foundation
import Shapes
import TokenVault

/// Auth0's credentials in a vault.
struct Auth0VaultStorage: CredentialsStorage {
    let storage: any BlockingTokenStorage

    func getEntry(forKey key: String) throws -> Data {
        guard let secret = try storage.secret(for: TokenKey(key)) else { throw NoEntry() }
        return Data(secret.unprotectedBytes())
    }
    func setEntry(_ data: Data, forKey key: String) throws {
        try storage.store(Secret(data), for: TokenKey(key))
    }
    func deleteEntry(forKey key: String) throws { try storage.delete(for: TokenKey(key)) }
    func deleteAllEntries() throws { try storage.deleteAll() }
}

/// Known to be absent: a locked vault throws a `TokenStorageError` instead.
struct NoEntry: Error {}
