/// Why nothing can be written to an open vault.
public enum WritingObstacle: String, Hashable, Sendable {
    /// It was opened for reading only (``FileVaultConfiguration/isReadOnly``).
    case asked
    /// It is on a file system that is mounted read-only.
    case fileSystem
    /// This user may not write to the file.
    case permissions

    /// What ``VaultStatus/notes`` says.
    var note: String {
        switch self {
        case .asked: "opened for reading only"
        case .fileSystem: "the vault is on a read-only file system: nothing can be stored"
        case .permissions: "the vault file may not be written to: nothing can be stored"
        }
    }

    /// What is said of a write to a vault that was opened for reading only.
    package static let reasonWhenAsked = "the vault was opened for reading only"

    var error: TokenStorageError {
        switch self {
        case .asked:
            .file(
                .readOnly, underlying: Self.reasonWhenAsked,
                advice: "open it for writing as well")
        case .fileSystem:
            .file(
                .readOnly, underlying: "the vault is on a read-only file system",
                advice: "mount it writable, or copy the vault to one that is")
        case .permissions:
            .file(
                .readOnly, underlying: "this user may not write to the vault file",
                advice: "run chmod 600 on it, and open it again")
        }
    }
}
