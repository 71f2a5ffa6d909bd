import Foundation
import Shapes
import TokenVault

/// supabase-swift's sessions in a vault.
struct SupabaseVaultStorage: AuthLocalStorage {
    let storage: any BlockingTokenStorage

    func store(key: String, value: Data) throws { try storage.store(Secret(value), for: TokenKey(key)) }
    func retrieve(key: String) throws -> Data? {
        try storage.secret(for: TokenKey(key)).map { Data($0.unprotectedBytes()) }
    }
    func remove(key: String) throws { try storage.delete(for: TokenKey(key)) }
}
