import ArgumentParser
import ProgramSupport
import TokenVault

struct History: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "List an item's current value and its replaced values, without secrets.",
            description: """
                The newest value comes first. A line has the generation, the time of the store, and the policy. Values that cannot be shown are counted on standard error, and the exit status says why.

                A replaced value stays in the vault's file until the item is deleted or the vault is compacted. A vault also compacts itself: a small vault does so with each deletion. "vaultctl compact --keep-values" sets how many replaced values \
                stay.

                "vaultctl undo" brings a value back. A rename, a restore and a merge begin a new history.
                """,
            examples: [
                "vaultctl history access_token",
                "vaultctl history access_token --service com.example.app --json",
            ],
            statuses: [
                .notFound: "There is no item with this key.",
                .locked: "Values are hidden while the vault is locked, or no unlock method was given.",
                .refused: "The passphrase or key is wrong, or does not open some of the values.",
                .wrongDevice: "Some of the values belong to another device.",
            ],
            standard: .items))

    @Argument(help: "The secret's name.", completion: NameCompletion.keys) var key: String
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
