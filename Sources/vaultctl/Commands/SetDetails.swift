import ArgumentParser
import ProgramSupport
import TokenVault

struct SetDetails: VaultCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        page: CommandPage(
            abstract: "Change label, attributes, policy or expiry, and keep the secret.",
            description: """
                Details that are not given stay. --attribute adds an attribute or changes it. An empty --label removes the label, and "--expires never" removes the expiry.
                """,
            examples: [
                "vaultctl set access_token --label \"Work account\" --attribute host=example.com",
                "vaultctl set access_token --remove-attribute host --expires never",
                "vaultctl set access_token --policy after-first-unlock",
            ],
            statuses: [
                .failure: "The store does not support the policy, or another failure.",
                .notFound: "There is no item with this key.",
                .refused: "The passphrase or key is wrong, or does not open items of this policy.",
                .conflict:
                    "The item has another generation (--if-generation), or the same vault is at two paths.",
            ],
            standard: .items))

    @Argument(help: "The secret's name.", completion: NameCompletion.keys) var key: String
    @OptionGroup var service: ServiceOptions
    @OptionGroup var details: DetailOptions
    @Option(help: ArgumentHelp("Remove this attribute. May be given several times.", valueName: "name"))
    var removeAttribute: [String] = []
    @Option(help: ArgumentHelp("Only if the item has this generation.", valueName: "number"))
    var ifGeneration: String?
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let key = try Settings.key(key)
        let service = try Settings.service(service.service)
        let given = try ItemDetails.details(
            policy: details.policy, label: details.label, attributes: details.attribute,
            expires: details.expires)
        guard given != TokenDetails() || !removeAttribute.isEmpty else {
            throw .usage(
                "there is nothing to set",
                "give --label, --attribute, --policy or --expires; \"vaultctl store\" takes another value")
        }
        let expected = try ifGeneration.map { text throws(CommandFailure) in try Settings.generation(text) }
        let storage = try session.storage(service: service)
        // Attributes are merged with the present ones, so the item must not change in between. After a
        // conflict, the loop reads the item again.
        for attempt in 1... {
            guard
                let metadata = try calling({ () throws(TokenStorageError) in
                    try storage.metadata(for: key)
                })
            else { throw .notFound }
            var changed = given
            if given.attributes != nil || !removeAttribute.isEmpty {
                var attributes = metadata.attributes
                for (name, value) in given.attributes ?? [:] { attributes[name] = value }
                for name in removeAttribute { attributes[name] = nil }
                changed.attributes = attributes
            }
            let expectation = TokenChange.Expectation.generation(expected ?? metadata.generation)
            do {
                try storage.commit([.update(key, details: changed, expecting: expectation)])
                return .done
            } catch {
                guard error.code == .conflict, expected == nil, attempt < 100 else {
                    throw CommandFailure(error)
                }
            }
        }
        return .done
    }
}
