import ArgumentParser
import ProgramSupport
import TokenVault

struct Keyring: ParsableCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Create a keyring for the secret-service backend.",
            description: """
                A session without a desktop may have no default keyring, and a container has no keyring.
                """,
            examples: [
                "vaultctl keyring create",
                "vaultctl keyring create --label Work --passphrase-file passphrase.txt",
            ],
            standard: .group),
        subcommands: [KeyringCreate.self])
}

struct KeyringCreate: VaultCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        page: CommandPage(
            abstract: "Create a keyring, unlocked.",
            description: """
                The new keyring becomes the default keyring if there is none. The command reads the keyring's passphrase with \
                --passphrase-file or --passphrase-fd, or prompts for the passphrase twice on the terminal. Only gnome-keyring \
                takes such a passphrase. Without a terminal, the desktop prompts. VAULTCTL_PASSPHRASE_FILE is for vaults and is not read.

                With --json, the output is an object with label and default.
                """,
            examples: [
                "vaultctl keyring create",
                "vaultctl keyring create --passphrase-file passphrase.txt",
                "vaultctl keyring create --label Work --passphrase-fd 0 <passphrase.txt",
                "VAULTCTL_COLLECTION=Work vaultctl store k --backend secret-service",
            ],
            statuses: [
                .locked: "No passphrase was given, and no prompt is possible.",
                .unavailable:
                    "No keyring service answers on the bus, the service takes no passphrase from a program, or the prompt was dismissed.",
                .conflict: "A keyring has this label. Without --label: there is a default keyring.",
            ],
            standard: .waiting))

    @Option(help: ArgumentHelp("The label of the keyring; else \"Default keyring\".", valueName: "text"))
    var label: String?
    @OptionGroup(title: "Passphrase of the keyring") var new: NewKeyringOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let label = try Settings.text(label, named: "--label", environment: nil)
        var location = location.arguments
        // The command ignores the vault's unlock methods and the backend of other commands.
        location.backend = location.backend ?? Backend.secretService.rawValue
        let session = try Session(console, location)
        guard session.backend == .secretService else {
            throw .usage("only the secret-service backend has keyrings", "leave out --backend")
        }
        let passphrase = try new.read(console)
        let made = try calling { () throws(TokenStorageError) in
            try session.keyring().createKeyringBlocking(label: label, passphrase: passphrase)
        }
        console.progress.clear()
        if format.json {
            var json = JSONWriter(console.output)
            json.object { json in
                json.member("label", made.label)
                json.member("default", made.isDefault)
            }
            json.end()
        }
        console.remark("Created the keyring \"\(made.label)\"\(made.isDefault ? ", the default one" : "")")
        return .done
    }
}

/// The source of a new keyring's passphrase. The environment does not apply, because its variables name the
/// unlock method of a vault.
struct NewKeyringOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The file whose first line is the keyring's passphrase.", valueName: "path"),
        completion: .file())
    var passphraseFile: String?

    @Option(
        name: .customLong("passphrase-fd"),
        help: ArgumentHelp(
            "The open descriptor whose first line is the keyring's passphrase.", valueName: "number"))
    var passphraseDescriptor: String?

    /// Reads the passphrase, or asks for it twice. Returns `nil` when the desktop shall ask. Throws `locked`
    /// when no prompt is allowed.
    func read(_ console: Console) throws(CommandFailure) -> Secret? {
        let source = try UnlockSource(
            UnlockArguments(passphraseFile: passphraseFile, passphraseDescriptor: passphraseDescriptor))
        if passphraseFile != nil || passphraseDescriptor != nil {
            return try source.readNewPassphrase(console)
        }
        if let passphrase = try console.askNewPassphrase("Passphrase of the keyring") { return passphrase }
        guard console.mayAsk else {
            throw CommandFailure(
                .locked, "the keyring's passphrase was not given", "give --passphrase-file or --passphrase-fd"
            )
        }
        return nil
    }
}
