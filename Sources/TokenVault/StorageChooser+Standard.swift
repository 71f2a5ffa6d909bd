public import TokenVaultCore
internal import TokenVaultDesktop

extension StorageChooser {
    /// Returns a chooser in the usual order: the user's desktop keyring where there is one, then `vault`.
    public static func standard(
        vault: StorageCandidate, rememberingIn directory: FilePath?
    ) -> StorageChooser {
        StorageChooser(StorageCandidate.desktop + [vault], rememberingIn: directory)
    }
}
