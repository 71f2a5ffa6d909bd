import ArgumentParser
import ProgramSupport
import TokenVault

struct Rename: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Give an item another key, which must be free.",
            description: """
                The item keeps its secret, label, attributes, policy and expiry. The earlier values of the item are removed: "vaultctl \
                history" begins again.
                """,
            examples: [
                "vaultctl rename token access_token",
                "vaultctl rename token access_token --service com.example.app",
            ],
            statuses: [
                .notFound: "There is no item with the first key.",
                .conflict: "The new key has an item, or the same vault is at two paths.",
            ],
            standard: .items))

    @Argument(help: "The secret's name.", completion: NameCompletion.keys) var key: String
    @Argument(help: "The new name of the secret.") var new: String
    @OptionGroup var service: ServiceOptions
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let key = try Settings.key(key)
        let newKey = try Settings.key(new)
        guard key != newKey else {
            throw .usage("the new key is the old one", "give another one")
        }
        let service = try Settings.service(service.service)
        let storage = try session.storage(service: service)
        try calling { () throws(TokenStorageError) in
            _ = try storage.commit([.rename(key, to: newKey)])
        }
        return .done
    }
}
