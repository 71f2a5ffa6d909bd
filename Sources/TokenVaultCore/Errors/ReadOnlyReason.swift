/// The reason that nothing can be written to an open vault.
public enum ReadOnlyReason: String, Hashable, Sendable {
    /// The caller opened the vault for reading only (``FileVaultConfiguration/isReadOnly``).
    case requested = "asked"
    /// The vault is on a file system that is mounted read-only.
    case fileSystem
    /// This user may not write to the file.
    case permissions

    /// The text in ``VaultStatus/notes``.
    package var note: String {
        switch self {
        case .requested: "opened for reading only"
        case .fileSystem: "the vault is on a read-only file system: nothing can be stored"
        case .permissions: "the vault file may not be written to: nothing can be stored"
        }
    }

    package var error: TokenStorageError { .file(.readOnly, .readOnly(self)) }
}
