import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault

struct Destroy: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Remove the vault, its anchor and its device key.",
        discussion: """
            Every secret in it is gone for good. Asks first, unless --yes is given; needs no unlocking.

            With --forget, for a vault whose file is gone already, or has another vault in its place: removes what \
            this device keeps for it, so that another one can be made or used there. Should the file turn up again, what was stored in it for this \
            device only cannot be read any more.

            Examples:
              vaultctl destroy
              vaultctl destroy --vault team.vault --yes
              vaultctl destroy --vault /media/stick/lost.vault --forget
            """)

    @Flag(help: "Do not ask.") var yes = false
    @Flag(help: "Forget a vault whose file is gone.") var forget = false
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
