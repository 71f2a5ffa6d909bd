import ArgumentParser
import ProgramSupport
import TokenVault
import TokenVaultPlatform

struct Retrieve: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the exact bytes of a secret.",
        discussion: """
            A newline is added only on a terminal. Exit status 3 when there is no such key: locked (4) or \
            damaged (7) never looks like that. In a keyring, an item of another program with the attributes \
            "service" and "account" is printed where there is none of vaultctl's.

            Examples:
              vaultctl retrieve access_token
              token=$(vaultctl retrieve access_token --service com.example.app) || exit
              vaultctl retrieve access_token --json
            """)

    @Argument(help: "The secret's name. One that starts with a dash follows --.") var key: String
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
