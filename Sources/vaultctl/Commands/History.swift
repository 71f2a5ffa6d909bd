import ArgumentParser
import ProgramSupport
import TokenVault

struct History: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "List an item's present value and those it replaced, without secrets.",
        discussion: """
            The newest comes first; a line has the generation, when the value was stored, and its policy. Values that were \
            replaced stay in the vault's file until the item is deleted or the vault is compacted. That happens by itself as \
            well, in a small vault whenever any item is deleted. "vaultctl compact --keep-values" says how many stay all the \
            same. "vaultctl undo" brings one back.

            Examples:
              vaultctl history access_token
              vaultctl history access_token --service com.example.app --json
            """)

    @Argument(help: "The secret's name.") var key: String
    @OptionGroup var service: ServiceOptions
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let key = try Settings.key(key)
        let storage = try session.history(service: try Settings.service(service.service))
        let (listing, state) = try calling { () throws(TokenStorageError) in
            (try storage.history(of: key), try storage.lockState())
        }
        if listing.items.isEmpty, listing.hidden == 0 { throw .notFound }
        if format.json {
            var json = JSONWriter(console.output)
            json.array { json in
                for item in listing.items { json.object { json in json.item(item) } }
            }
            json.end()
        } else {
            for item in listing.items {
                console.output.line(
                    "\(item.generation)\t\(Timestamp.text(item.modified))\t\(item.policy.rawValue)")
            }
        }
        guard listing.hidden > 0 else { return .done }
        throw List.failure(hiding: listing, state) { $0 == 1 ? "1 value is" : "\($0) values are" }
    }
}
