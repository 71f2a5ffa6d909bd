import ProgramSupport
import TokenVault
import TokenVaultPlatform

/// Creates and shows recovery keys.
enum RecoveryKeys {
    /// Adds a slot for a new recovery key to an unlocked vault, after showing the key. A key that was not
    /// shown opens nothing.
    @discardableResult
    static func add(
        to vault: BlockingFileVault, showing show: (VaultSlot, RecoveryKey) throws(CommandFailure) -> Void
    ) throws(CommandFailure) -> VaultSlot {
        let key = RecoveryKey()
        var reason: CommandFailure?
        var isShown = false
        do throws(TokenStorageError) {
            return try vault.addSlot(.recoveryKey(key)) { (slot) throws(TokenStorageError) in
                do throws(CommandFailure) { try show(slot, key) } catch {
                    reason = error
                    throw TokenStorageError(.cancelled, operation: "slot add", backend: "vaultctl")
                }
                isShown = true
            }
        } catch {
            if let reason { throw reason }
            guard isShown else { throw CommandFailure(error) }
            var failure = CommandFailure(error)
            failure.happened += "; the recovery key that was shown opens nothing"
            throw failure
        }
    }

    /// Prints the key on standard output, as the only line.
    static func print(_ key: RecoveryKey, _ console: Console) throws(CommandFailure) {
        key.text.withBytes { console.output.write($0) }
        console.output.line("")
        try console.output.deliver()
        console.remark(
            "Write this recovery key down and keep it apart from the vault: it is not shown again.")
    }

    /// Offers a recovery key for a new vault, and shows the key only on the terminal. A failure to add the
    /// key does not fail the command.
    static func offer(_ vault: BlockingFileVault, _ console: Console) throws(CommandFailure) {
        guard console.canAsk else { return }
        console.progress.clear()
        let question = "Make a recovery key to write down, in case the passphrase is lost?"
        guard try console.offer(question) else { return }
        do throws(CommandFailure) {
            try add(to: vault) { (_, key) throws(CommandFailure) in try showOnTerminal(key, console) }
        } catch {
            console.note("no recovery key was made: \(error.happened)")
        }
    }

    /// Shows a key on the terminal, and waits until the user has written it down.
    static func showOnTerminal(_ key: RecoveryKey, _ console: Console) throws(CommandFailure) {
        console.progress.clear()
        try console.showOnce(
            "Recovery key: ", key.text,
            "Write it down and keep it apart from the vault: it is not shown again.")
    }
}
