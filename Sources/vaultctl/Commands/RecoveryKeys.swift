import ProgramSupport
import TokenVault
import TokenVaultPlatform

/// Making and showing recovery keys.
enum RecoveryKeys {
    /// Adds a slot for a fresh key to an unlocked vault, after the key was shown: a key that nobody has seen opens
    /// nothing.
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

    /// Prints the key on standard output: that line and nothing else.
    static func print(_ key: RecoveryKey, _ console: Console) throws(CommandFailure) {
        key.text.withBytes { console.output.write($0) }
        console.output.line("")
        try console.output.deliver()
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
            try add(to: vault) { (_, key) throws(CommandFailure) in try showOnTerminal(key, console) }
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
