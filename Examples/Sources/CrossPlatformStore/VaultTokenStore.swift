#if canImport(TokenVault)
import TokenVault

/// The tokens of the SDK in TokenVault. The manifest names TokenVault for Linux alone, so that this file is
/// empty elsewhere.
public struct VaultTokenStore: AuthTokenStore {
    private let storage: any TokenStorage

    /// Creates a store over a storage of the app: a vault, the agent, or memory in a test.
    public init(_ storage: any TokenStorage) { self.storage = storage }

    /// Opens the vault at `path` with the key in `keyFile`, and makes the vault at the first call. Throws
    /// `failed` for a wrong key, and for a vault that is missing later: its disk may not be mounted yet.
    public static func open(
        service: String, vault path: FilePath, stateDirectory: FilePath, keyFile: FilePath
    ) async throws(AuthTokenStoreError) -> VaultTokenStore {
        do throws(TokenStorageError) {
            let key = try UnlockMethod.keyFile(at: keyFile)
            let vault = StorageCandidate.file(
                at: path, configuration: FileVaultConfiguration(stateDirectory: stateDirectory),
                createsWhenMissing: true, unlockedWith: key)
            let chooser = StorageChooser([vault], rememberingIn: stateDirectory)
            return VaultTokenStore(try await chooser.choose(service: service).storage)
        } catch {
            throw AuthTokenStoreError(error)
        }
    }

    /// Stores `token` for `account`, under the policy that `KeychainTokenStore` uses. A storage that cannot
    /// keep this policy throws, and never weakens it.
    public func store(_ token: String, for account: String) async throws(AuthTokenStoreError) {
        do throws(TokenStorageError) {
            try await storage.store(
                token: token, for: TokenKey(account), policy: .whenUnlockedThisDeviceOnly)
        } catch {
            throw AuthTokenStoreError(error)
        }
    }

    public func retrieve(for account: String) async throws(AuthTokenStoreError) -> String? {
        do throws(TokenStorageError) {
            return try await storage.retrieve(for: TokenKey(account))
        } catch {
            throw AuthTokenStoreError(error)
        }
    }

    public func delete(for account: String) async throws(AuthTokenStoreError) {
        do throws(TokenStorageError) {
            try await storage.delete(for: TokenKey(account))
        } catch {
            throw AuthTokenStoreError(error)
        }
    }
}

extension AuthTokenStoreError {
    /// Creates the error of a failed call of TokenVault.
    init(_ error: TokenStorageError) {
        self = error.code == .locked ? .locked : .failed("\(error)")
    }
}
#endif
