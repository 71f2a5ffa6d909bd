import ArgumentParser
import ProgramSupport
import TokenVault

struct Delete: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Delete an item, or every item of a service.",
            description: """
                A deletion also erases the earlier values of the item. Copies and backups of the vault file still have the \
                item. With --all, the command first prompts for a confirmation, unless --yes is given.

                With --json, the output is an object with the number of deleted items.
                """,
            examples: [
                "vaultctl delete access_token",
                "vaultctl delete access_token --ignore-missing --service com.example.app",
                "vaultctl delete --all --service com.example.app --yes",
            ],
            statuses: [
                .notFound: "There is no item with this key, and --ignore-missing was not given.",
                .refused:
                    "The passphrase or key is wrong or may not delete this, or the deletion with --all was not confirmed.",
                .conflict:
                    "The item has another generation (--if-generation), or the same vault is at two paths.",
            ],
            standard: .items))

    @Argument(help: "The secret's name.", completion: NameCompletion.keys) var key: String?
    @OptionGroup var service: ServiceOptions
    @Flag(help: "Succeed if there is no such key.") var ignoreMissing = false
    @Option(help: ArgumentHelp("Only if the item has this generation.", valueName: "number"))
    var ifGeneration: String?
    @Flag(help: "Delete every item of the service.") var all = false
    @Flag(help: "Do not prompt for a confirmation.") var yes = false
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let service = try Settings.service(service.service)
        let deleted: Int
        if all {
            guard key == nil, ifGeneration == nil else {
                throw .usage("--all excludes a key and a generation", "give one of them")
            }
            if !yes { try console.confirm("Delete every item of the service \"\(service)\"?") }
            let storage = try session.storage(service: service)
            deleted = try calling { () throws(TokenStorageError) in try storage.deleteAll() }
        } else {
            guard let key else {
                throw .usage("an argument is missing", "give a key, or --all")
            }
            deleted = try delete(Settings.key(key), service, session) ? 1 : 0
            if deleted == 0, !ignoreMissing { throw .notFound }
        }
        if format.json {
            var json = JSONWriter(console.output)
            json.object { json in json.member("deleted", deleted) }
            json.end()
        }
        return .done
    }

    private func delete(
        _ key: TokenKey, _ service: String, _ session: Session
    ) throws(CommandFailure) -> Bool {
        let expected = try ifGeneration.map { text throws(CommandFailure) in try Settings.generation(text) }
        let storage = try session.storage(service: service)
        return try calling { () throws(TokenStorageError) in
            if let expected { return try storage.compareAndDelete(for: key, expected: expected) }
            return try storage.delete(for: key)
        }
    }
}
