import TokenVault

/// The keyring of the person's session, which can keep keys of vaults.
enum SystemKeyring {
    /// The keyring; `nil` when this program cannot reach any. Whether one is running its calls say.
    static var items: (any KeyringItems)? { nil }
}
