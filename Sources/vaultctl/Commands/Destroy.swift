import ArgumentParser
import SystemPackage
import TokenVault

struct Destroy: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Remove the vault, its anchor and its device key.",
        discussion: """
            Every secret in it is gone for good. Asks first, unless --yes is given; needs no unlocking.

            Examples:
              vaultctl destroy
              vaultctl destroy --vault team.vault --yes
            """)

    @Flag(help: "Do not ask.") var yes = false
    @OptionGroup(title: "Where and how") var location: LocationOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments)
        // Opened first: what is no vault is not removed, and there is no question about what is not
        // there. A damaged vault can be removed all the same.
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
        if !yes { try console.confirm("Remove \(path.string) and every secret in it, for good?") }
        let configuration = try session.configuration
        try calling { () throws(TokenStorageError) in
            try BlockingFileVault.destroy(at: path, configuration: configuration, keyring: keyring)
        }
        if session.asksAgent { session.releaseFromAgent() }
        return .done
    }
}
