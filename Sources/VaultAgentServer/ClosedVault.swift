internal import SystemPackage
internal import TokenVault
internal import VaultAgent

/// The agent's record of a vault that was closed when it locked, since nothing in it could be read. Clients
/// get `locked` until the next unlock. The record has no key and no descriptor.
struct ClosedVault: Sendable {
    let facts: VaultInfo
    let idleTime: Duration?
    /// The vault's file, if it had no item.
    let emptyFile: EmptyVaultFile?
    /// The time when the vault was closed.
    let since: ContinuousClock.Instant

    var identifier: String { facts.identifier }

    func status(at path: FilePath, _ sessionObstacle: String?) -> AgentVaultStatus {
        AgentVaultStatus(
            path: path, state: .locked, idleTime: idleTime, sessionObstacle: sessionObstacle)
    }

    /// Whether the vault had no item when it was closed, and its file was not written to since.
    func isKnownToBeEmpty(at path: FilePath) -> Bool { emptyFile?.isUnchanged(at: path) ?? false }

    /// Returns the vault's own error for an operation on an item.
    func locked(_ operation: String) -> TokenStorageError {
        TokenStorageError(.locked, operation: operation, backend: "file")
    }
}
