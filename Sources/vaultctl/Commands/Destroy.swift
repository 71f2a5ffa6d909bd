import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault

struct Destroy: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Remove the vault, its anchor and its device key.",
            description: """
                Every secret in the vault is gone for good. The command also removes the vault's key in the login keyring, and the files \
                that a restore, a merge or an adoption kept (.replaced). The command prompts first, \
                unless --yes is given, and needs no unlock.

                With --forget, the command removes only what this device keeps for a vault: the anchor, the device key and the \
                path. Use --forget for a vault whose file is gone, or has another vault in its place. Another vault can then be created \
                or used there.

                If a forgotten file returns, this device cannot read the items that were stored for this device only. This \
                device then also does not notice an older copy.
                """,
            examples: [
                "vaultctl destroy",
                "vaultctl destroy --vault team.vault --yes",
                "vaultctl destroy --vault /media/stick/lost.vault --forget",
            ],
            statuses: [
                .locked: "The vault is removed, but its key is left in the login keyring, which is locked.",
                .refused: "The removal was not confirmed.",
                .damaged: "This device expects another vault at the path.",
                .unavailable:
                    "There is no vault at the path. With --forget: this device knows no vault there.",
                .conflict:
                    "The file has a second name (a hard link). With --forget: the vault, or a file that is no vault, is at the path.",
            ],
            standard: .waiting))

    @Flag(help: "Do not prompt for a confirmation.") var yes = false
    @Flag(help: "Forget a vault whose file is gone, or has another vault in its place.") var forget = false
    @OptionGroup(title: "Where and how") var location: LocationOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments)
        if forget { return try forgetVault(session) }
        // The vault is opened before the question, so a missing file or a file that is no vault is rejected.
        // A damaged vault can still be removed.
        var keyring: (any KeyringItems)?
        do throws(CommandFailure) {
            let vault = try session.openVault()
            let slots = try calling { () throws(TokenStorageError) in try vault.slots() }
            if slots.contains(where: { $0.kind == .secretService }) { keyring = console.keyring }
            vault.close()
        } catch {
            guard error.status == .damaged else { throw error }
        }
        let path = try session.vaultPath
        if !yes {
            try console.confirm(
                "Remove \(path.string), the files it replaced (\(path.lastComponent?.string ?? "").replaced …), and every "
                    + "secret in them, for good?")
        }
        let configuration = try session.configuration
        try calling { () throws(TokenStorageError) in
            try BlockingFileVault.destroy(at: path, configuration: configuration, keyring: keyring)
        }
        session.releaseFromAgent()
        return .done
    }

    private func forgetVault(_ session: Session) throws(CommandFailure) -> ExitStatus {
        try session.requireFile()
        let (path, configuration) = (try session.vaultPath, try session.configuration)
        let isKnown = BlockingFileVault.remembersVault(at: path, configuration: configuration)
        // There is no question before a command that cannot succeed.
        if isKnown, !yes {
            try session.console.confirm(
                "Forget the vault that was at \(path.string), with this device's key to it, for good?")
        }
        let keyring = isKnown ? openKeyring(session) : nil
        try calling { () throws(TokenStorageError) in
            try BlockingFileVault.forget(at: path, configuration: configuration, keyring: keyring)
        }
        session.releaseFromAgent()
        return .done
    }

    /// Returns the login keyring, if it is unlocked. Only a search can show whether the keyring has a key of
    /// the vault.
    private func openKeyring(_ session: Session) -> (any KeyringItems)? {
        guard session.console.hasKeyring() else { return nil }
        let keyring = session.keyring(mayAsk: false)
        guard (try? keyring.storage(service: "forget").blocking.lockState()) == .unlocked else {
            session.console.note("the login keyring is locked: a key of that vault stays in it")
            return nil
        }
        return SecretServiceVaultKeys(keyring)
    }
}
