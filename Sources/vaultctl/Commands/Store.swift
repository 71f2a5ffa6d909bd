import ArgumentParser
import SystemPackage
import TokenVault
import TokenVaultPlatform

struct Store: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Store a secret under a key, replacing what is there.",
        discussion: """
            The secret comes from standard input, where one newline at the end is dropped, or is asked for \
            on a terminal. It may be empty and is at most 1 MiB. A replaced item keeps label, attributes, \
            policy and expiry unless they are given.

            In a pipe, a producer that fails leaves an empty secret stored, in place of the one before; \"set -o pipefail\" \
            only has the shell say so. The last example stores nothing then.

            Examples:
              vaultctl store access_token
              get-token | vaultctl store access_token --service com.example.app \\
                --expires 1h
              vaultctl store backup.key --binary --if-absent <backup.key
              token=$(get-token) && printf %s "$token" | vaultctl store access_token
            """)

    @Argument(help: "The secret's name. One that starts with a dash follows --.") var key: String
    @OptionGroup var service: ServiceOptions
    @Flag(help: "Keep every byte, a newline at the end included.") var binary = false
    @OptionGroup var details: DetailOptions
    @Flag(help: "Only when the key is free.") var ifAbsent = false
    @Option(help: ArgumentHelp("Only when the item has this generation.", valueName: "number"))
    var ifGeneration: String?
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let key = try Settings.key(key)
        let service = try Settings.service(service.service)
        let details = try ItemDetails.details(
            policy: details.policy, label: details.label, attributes: details.attribute,
            expires: details.expires)
        let expectation = try expectation()
        let storage = try session.storage(service: service)
        let secret = try readSecret(console)
        let generation: Generation?
        do {
            generation = try storage.commit([
                .store(secret, for: key, details: details, expecting: expectation)
            ]).generation
        } catch {
            if error.code == .conflict, ifAbsent {
                throw CommandFailure(
                    .conflict, "there is an item under that key", "leave out --if-absent to replace it")
            }
            throw CommandFailure(error)
        }
        if session.backend == .memory {
            console.note("the memory backend forgets everything when the command ends")
        }
        if format.json {
            var json = JSONWriter(console.output)
            json.object { json in
                json.member("service", service)
                json.member("key", key.name)
                json.member("generation", generation)
            }
            json.end()
        }
        return .done
    }

    private func expectation() throws(CommandFailure) -> TokenChange.Expectation {
        guard let ifGeneration else { return ifAbsent ? .absent : .any }
        guard !ifAbsent else {
            throw .usage("--if-absent and --if-generation exclude each other", "give one of them")
        }
        return .generation(try Settings.generation(ifGeneration))
    }

    private func readSecret(_ console: Console) throws(CommandFailure) -> Secret {
        if StandardStream.input.isTerminal {
            if let secret = try console.askHidden("Secret: ") { return secret }
            throw CommandFailure(.refused, "there is no secret on standard input", "pipe it in")
        }
        do throws(SystemFailure) {
            let limit = Secret.maximumLength + (binary ? 0 : 1)
            var bytes = try InputSource.standard.readAll(limit: limit, deadline: console.deadline)
            defer { SmallFile.wipe(&bytes) }
            if !binary, bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
            guard bytes.count <= Secret.maximumLength else { throw SystemFailure(.fileTooLarge, "read") }
            return Secret(bytes)
        } catch {
            if error.errno == .fileTooLarge { throw CommandFailure(TokenStorageError.tooLarge) }
            throw CommandFailure(error, "standard input", "pipe the secret in")
        }
    }
}
