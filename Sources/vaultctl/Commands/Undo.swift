import ArgumentParser
import ProgramSupport
import TokenVault

struct Undo: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Bring back the value that an item had before.",
        discussion: """
            Stores the value before the present one again, or with --to another one of "vaultctl history", with its policy, \
            label, attributes and expiry. A policy that a session without the root key had chosen is not brought back. What is \
            replaced joins the history: a second undo takes the first one back. The value of a deleted item is gone, and so \
            is what compaction has removed: see "vaultctl help history".

            Examples:
              vaultctl undo access_token
              vaultctl undo access_token --to 41 --service com.example.app
            """)

    @Argument(help: "The secret's name.") var key: String
    @Option(help: ArgumentHelp("The value that was stored as this generation.", valueName: "generation"))
    var to: String?
    @OptionGroup var service: ServiceOptions
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let key = try Settings.key(key)
        let generation = try to.map { (text) throws(CommandFailure) in
            try Settings.generation(text, named: "--to")
        }
        let storage = try session.history(service: try Settings.service(service.service))
        let commit = try calling { () throws(TokenStorageError) in try storage.undo(key, to: generation) }
        commit.policyResets.forEach(console.notePolicyReset)
        return .done
    }
}
