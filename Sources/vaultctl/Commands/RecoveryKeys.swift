import TokenVault
import TokenVaultPlatform

/// Making and showing recovery keys.
enum RecoveryKeys {
    /// Adds a slot for a fresh key to an unlocked vault.
    static func add(to vault: BlockingFileVault) throws(CommandFailure) -> (VaultSlot, RecoveryKey) {
        let key = RecoveryKey()
        let slot = try calling { () throws(TokenStorageError) in try vault.addSlot(.recoveryKey(key)) }
        return (slot, key)
    }

    /// Prints the key on standard output: that line and nothing else.
    static func show(_ key: RecoveryKey, _ console: Console) {
        key.text.withBytes { console.output.write($0) }
        console.output.line("")
        console.remark(
            "Write this recovery key down and keep it apart from the vault: it is not shown again.")
    }

    /// Offers a key to the person who makes a vault, and shows it on the terminal alone. That it cannot be
    /// added is no reason to have no vault.
    static func offer(_ vault: BlockingFileVault, _ console: Console) throws(CommandFailure) {
        guard console.canAsk else { return }
        console.progress.clear()
        let question = "Make a recovery key, to be written down for the day the passphrase is lost?"
        guard try console.offer(question) else { return }
        do throws(CommandFailure) {
            let (_, key) = try add(to: vault)
            try showOnTerminal(key, console)
        } catch {
            console.note("no recovery key was made: \(error.happened)")
        }
    }

    /// Shows a key on the terminal, and waits until the person has written it down.
    static func showOnTerminal(_ key: RecoveryKey, _ console: Console) throws(CommandFailure) {
        console.progress.clear()
        try console.showOnce(
            "Recovery key: ", key.text,
            "Write it down and keep it apart from the vault: it is not shown again.")
    }
}
