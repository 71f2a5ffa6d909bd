import ArgumentParser
import ProgramSupport
import TokenVault

struct Undo: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Bring back the previous value of an item.",
            description: """
                The command stores the previous value again, or with --to another value from "vaultctl history". The value comes back \
                with its policy, label, attributes and expiry. A policy that was chosen without the root key is not brought back.

                The replaced value joins the history: a second undo takes the first one back. The values of a deleted item are gone. \
                So are values that compaction has removed: see "vaultctl help history".
                """,
            examples: [
                "vaultctl undo access_token",
                "vaultctl undo access_token --to 41 --service com.example.app",
            ],
            statuses: [
                .notFound: "There is no item with this key, or the file has no such earlier value.",
                .refused: "The passphrase or key is wrong, or does not open the value.",
                .wrongDevice: "The value belongs to another device.",
                .conflict: "The item was changed meanwhile, or the same vault is at two paths.",
                .usage: "The command line is wrong, or --to names the current value.",
            ],
            standard: .items))

    @Argument(help: "The secret's name.", completion: NameCompletion.keys) var key: String
    @Option(help: ArgumentHelp("The generation of the value to bring back.", valueName: "generation"))
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
