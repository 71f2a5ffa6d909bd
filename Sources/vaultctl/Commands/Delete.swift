import ArgumentParser
import ProgramSupport
import TokenVault

struct Delete: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Delete an item, or all of a service.",
        discussion: """
            Exit status 3 when there is no such key, unless --ignore-missing is given.

            Examples:
              vaultctl delete access_token
              vaultctl delete access_token --ignore-missing --service com.example.app
              vaultctl delete --all --service com.example.app --yes
            """)

    @Argument(help: "The secret's name.") var key: String?
    @OptionGroup var service: ServiceOptions
    @Flag(help: "Succeed when there is no such key.") var ignoreMissing = false
    @Option(help: ArgumentHelp("Only when the item has this generation.", valueName: "number"))
    var ifGeneration: String?
    @Flag(help: "Delete every item of the service.") var all = false
    @Flag(help: "Do not ask.") var yes = false
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
