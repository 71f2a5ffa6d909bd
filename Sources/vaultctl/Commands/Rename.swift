import ArgumentParser
import ProgramSupport
import TokenVault

struct Rename: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Give an item another key, which must be free.",
        discussion: """
            Examples:
              vaultctl rename token access_token
              vaultctl rename token access_token --service com.example.app
            """)

    @Argument(help: "The secret's name.") var key: String
    @Argument(help: "Its new name.") var new: String
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
