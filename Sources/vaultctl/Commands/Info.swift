import ArgumentParser
import TokenVault

#if canImport(FoundationEssentials)
import FoundationEssentials
import ProgramSupport
#endif

struct Info: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Print the details of an item, without its secret.",
            description: """
                The details are the service, the label, the attributes, the policy, the dates and the generation. With --json, \
                the output is the same object as that of "vaultctl retrieve --json", without the value.

                The output marks a policy that was chosen without the root key: with a slot of limited scope, or while the vault \
                was locked. In JSON, the mark is policyOrigin. "vaultctl store" does not keep such a policy.
                """,
            examples: [
                "vaultctl info access_token",
                "vaultctl info access_token --service com.example.app --json",
            ],
            statuses: [
                .notFound: "There is no item with this key.",
                .refused: "The passphrase or key is wrong, or does not open this item.",
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
        let service = try Settings.service(service.service)
        let storage = try session.storage(service: service, orOthers: true)
        guard let metadata = try calling({ () throws(TokenStorageError) in try storage.metadata(for: key) })
        else { throw .notFound }
        if format.json {
            var json = JSONWriter(console.output)
            json.object { json in json.item(metadata) }
            json.end()
        } else {
            show(metadata, console.output)
        }
        return .done
    }

    private func show(_ item: TokenMetadata, _ output: Output) {
        output.line("key:         \(PrintedName.screen(item.key.name))")
        output.line("service:     \(PrintedName.screen(item.service))")
        if let label = item.label { output.line("label:       \(CommandFailure.printable(label))") }
        for (name, value) in item.attributes {
            output.line("attribute:   \(PrintedName.screen("\(name)=\(value)"))")
        }
        let origin = item.isPolicyFromLimitedSession ? " (chosen without the root key)" : ""
        output.line("policy:      \(item.policy.rawValue)\(origin)")
        output.line("created:     \(Timestamp.text(item.created))")
        output.line("modified:    \(Timestamp.text(item.modified))")
        if let expires = item.expires {
            let mark = item.isExpired(at: Date()) ? " (expired)" : ""
            output.line("expires:     \(Timestamp.text(expires))\(mark)")
        }
        output.line("generation:  \(item.generation)")
    }
}
