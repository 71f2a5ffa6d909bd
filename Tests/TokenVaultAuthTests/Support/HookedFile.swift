import HookedStorage
import SystemPackage
import TokenVault

/// A file storage whose disk is full from the answer to a refresh on, until there is room again.
struct HookedFile: VaultBacked {
    let vaultPath: FilePath
    private let hooked: HookedStorage

    init(base: FileTokenStorage, server: RotatingServer, hasRoom: Gate) {
        vaultPath = base.vaultPath
        hooked = HookedStorage(base: base) { call, moment, _ throws(TokenStorageError) in
            guard call == .commit, moment == .before, server.requests > 0, hasRoom.isClosed else { return }
            throw TokenStorageError(.noSpace, operation: "store", backend: "file")
        }
    }

    var service: String { hooked.service }
    var supportedPolicies: Set<AccessPolicy> { hooked.supportedPolicies }
    var defaultPolicy: AccessPolicy { hooked.defaultPolicy }
    func lockState() async throws(TokenStorageError) -> LockState { try await hooked.lockState() }
    func secret(for key: TokenKey) async throws(TokenStorageError) -> Secret? {
        try await hooked.secret(for: key)
    }
    func item(for key: TokenKey) async throws(TokenStorageError) -> TokenItem? {
        try await hooked.item(for: key)
    }
    func metadata(for key: TokenKey) async throws(TokenStorageError) -> TokenMetadata? {
        try await hooked.metadata(for: key)
    }
    func list(_ query: TokenQuery) async throws(TokenStorageError) -> TokenListing {
        try await hooked.list(query)
    }
    func commit(_ changes: [TokenChange]) async throws(TokenStorageError) -> TokenCommit {
        try await hooked.commit(changes)
    }
    func deleteAll() async throws(TokenStorageError) -> Int { try await hooked.deleteAll() }
    func changes() -> TokenChanges { hooked.changes() }
}
