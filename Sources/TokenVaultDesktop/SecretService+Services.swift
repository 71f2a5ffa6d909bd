public import TokenVaultCore
internal import TokenVaultPlatform

extension SecretService: TokenKeychain {
    /// Returns the services that have items of this library in the keyring. Keys of vaults
    /// (``SecretServiceVaultKeys``) are not among them. Throws `locked` when the keyring is locked and is not
    /// unlocked by a prompt, and as ``TokenStorage/list(_:)``.
    public func services() async throws(TokenStorageError) -> ServiceListing {
        try await run { (call) throws(TokenStorageError) in try self.services(for: call) }
    }

    /// Returns the services in the same way, for code that cannot wait.
    public func servicesBlocking() throws(TokenStorageError) -> ServiceListing {
        try services(for: BusCall(timeout: configuration.timeout))
    }

    private func services(for call: BusCall) throws(TokenStorageError) -> ServiceListing {
        try during("list") { () throws(TokenStorageError) in
            try withKeyring(call) { (access) throws(TokenStorageError) in try access.services() }
        }
    }
}

/// Keys of vaults in the user's keyring, so that the user's login opens a file vault.
///
/// Each is an item of this library. Its key is the vault's identifier and the name of the vault key.
public struct SecretServiceVaultKeys: KeyringItems {
    static let service = "org.tokenvault.vault-key"

    private let storage: SecretServiceTokenStorage.Blocking

    /// Creates access to the vault keys in a keyring.
    public init(_ secretService: SecretService) {
        var storage = secretService.storage(service: Self.service).blocking
        storage.keepsVaultKeys = true
        self.storage = storage
    }

    public func add(
        _ key: Secret, vault: String, name: String, label: String
    ) throws(TokenStorageError) {
        try storage.commit([
            .store(key, for: Self.item(vault, name), details: TokenDetails(label: label), expecting: .absent)
        ])
    }

    public func keys(vault: String) throws(TokenStorageError) -> [String: Secret] {
        let (keys, hidden) = try readKeys(of: vault)
        guard keys.isEmpty, hidden > 0 else { return keys }
        // A locked keyring may have the key: the user is prompted, as for an item that is found there.
        try storage.unlockWhatIsFound()
        return try readKeys(of: vault).keys
    }

    /// Returns the keys of a vault in unlocked keyrings, and the number of its items in locked keyrings.
    private func readKeys(
        of vault: String
    ) throws(TokenStorageError) -> (keys: [String: Secret], hidden: Int) {
        let prefix = Self.item(vault, "").name
        var keys: [String: Secret] = [:]
        let listing = try storage.list(TokenQuery(prefix: prefix))
        for item in listing.items {
            // A key that was deleted meanwhile or cannot be read opens nothing.
            do {
                guard let key = try storage.secret(for: item.key) else { continue }
                keys[String(item.key.name.dropFirst(prefix.count))] = key
            } catch {
                guard error.code == .corrupt || error.code == .unsupportedFormat else { throw error }
            }
        }
        return (keys, listing.hidden)
    }

    public func delete(vault: String, name: String) throws(TokenStorageError) -> Bool {
        try storage.delete(for: Self.item(vault, name))
    }

    private static func item(_ vault: String, _ name: String) -> TokenKey { TokenKey("\(vault).\(name)") }
}

extension StorageCandidate {
    /// Returns the user's keyring as a candidate. The name is `secret-service`.
    ///
    /// It is `unavailable` where there is no libsecret, no session bus, no Secret Service on it or no
    /// keyring. A locked keyring counts as there, and the user is prompted to unlock it if `configuration`
    /// allows that. A service that ends during the call, or does not start, may have the tokens: no other
    /// candidate takes its place.
    public static func secretService(
        _ configuration: SecretServiceConfiguration = SecretServiceConfiguration()
    ) -> StorageCandidate {
        let keyring = SecretService(configuration: configuration)
        return StorageCandidate(
            name: TokenStorageError.secretServiceBackend,
            probe: { () throws(TokenStorageError) in
                _ = try await keyring.storage(service: "probe").lockState()
                return .present
            },
            storage: { (service) throws(TokenStorageError) in keyring.storage(service: service) })
    }

    /// The candidates that a desktop session provides, in order of preference.
    package static var desktop: [StorageCandidate] { [.secretService()] }
}
