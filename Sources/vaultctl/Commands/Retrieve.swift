import ArgumentParser
import ProgramSupport
import TokenVault
import TokenVaultPlatform

struct Retrieve: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Print the exact bytes of a secret.",
            description: """
                A newline is added only on a terminal. An absent key has an exit status of its own: a locked or damaged vault never \
                looks like that.

                With --json, the output is an object with service, key, value (or valueBase64), policy, label, attributes, \
                created, modified, expires and generation. Absent details are left out.

                From a keyring, the command also prints an item of another program, if vaultctl has stored no item under the key. Such \
                an item needs the attributes "service" and "account".
                """,
            examples: [
                "vaultctl retrieve access_token",
                "token=$(vaultctl retrieve access_token --service com.example.app) || exit",
                "vaultctl retrieve access_token --json",
            ],
            statuses: [
                .notFound: "There is no item with this key.",
                .refused: "The passphrase or key is wrong, or does not open this item.",
            ],
            standard: .items))

    @Argument(
        help: "The secret's name. Before a name that starts with a dash, write --.",
        completion: NameCompletion.keys
    ) var key: String
    @OptionGroup var service: ServiceOptions
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    /// The parsed arguments, in the form of the fast path.
    var arguments: RetrieveArguments {
        RetrieveArguments(
            key: key, service: service.service, location: location.arguments, unlock: unlock.arguments,
            json: format.json)
    }

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        try Self.execute(arguments, console)
    }

    static func execute(
        _ arguments: RetrieveArguments, _ console: Console
    ) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, arguments.location, arguments.unlock)
        let key = try Settings.key(arguments.key)
        let service = try Settings.service(arguments.service)
        if arguments.json {
            let storage = try session.storage(service: service, orOthers: true)
            guard let item = try calling({ () throws(TokenStorageError) in try storage.item(for: key) })
            else { throw .notFound }
            var bytes = item.secret.unprotectedBytes()
            defer { SmallFile.wipe(&bytes) }
            var json = JSONWriter(console.output)
            json.object { json in json.item(item.metadata, value: bytes) }
            json.end()
        } else {
            guard let secret = try session.secret(for: key, service: service) else { throw .notFound }
            secret.withBytes { console.output.write($0) }
            if StandardStream.output.isTerminal { console.output.write("\n") }
        }
        return .done
    }
}

extension CommandFailure {
    /// The failure for a key that is known to be absent.
    static var notFound: CommandFailure {
        CommandFailure(TokenStorageError(.notFound, operation: "retrieve", backend: "vaultctl"))
    }
}
