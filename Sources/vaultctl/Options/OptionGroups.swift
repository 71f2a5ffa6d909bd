import ArgumentParser

/// The location of the vault, and the limits on waiting and asking.
struct LocationOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The vault file; else VAULTCTL_VAULT, else tokenvault/default.vault in XDG_DATA_HOME, which is ~/.local/share unless set.",
            valueName: "path"), completion: .file())
    var vault: String?

    @Option(
        help: ArgumentHelp(
            "Where secrets are kept: file, secret-service (the desktop's keyring) or memory.",
            valueName: "backend"),
        completion: .list(["file", "secret-service", "memory"]))
    var backend: String?

    @Option(
        help: ArgumentHelp(
            "The keyring that new items go to, by its label; else VAULTCTL_COLLECTION, else the default keyring. An item that is there is read, replaced and deleted in whichever keyring it is.",
            valueName: "label"))
    var collection: String?

    @Option(
        name: .customLong("state-dir"),
        help: ArgumentHelp("The directory of the device key and the rollback anchor.", valueName: "path"),
        completion: .directory)
    var stateDirectory: String?

    @Option(help: ArgumentHelp("Give up waiting after this time.", valueName: "seconds"))
    var timeout: String?

    @Flag(name: .customLong("no-input"), help: "Never ask; end with status 4 or 5 instead.")
    var noInput = false

    @Flag(
        name: .customLong("read-only"),
        help: "Take no lock and write nothing to the vault; what would is refused.")
    var readOnly = false

    @Flag(name: .customLong("no-agent"), help: "Open the vault here, also when the agent holds it.")
    var noAgent = false

    var arguments: LocationArguments {
        LocationArguments(
            vault: vault, backend: backend, collection: collection, stateDirectory: stateDirectory,
            timeout: timeout, noInput: noInput, readOnly: readOnly, noAgent: noAgent)
    }
}

/// The unlock method of the vault.
struct UnlockOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The file whose first line is the passphrase.", valueName: "path"),
        completion: .file())
    var passphraseFile: String?

    @Option(
        name: .customLong("passphrase-fd"),
        help: ArgumentHelp("The open descriptor whose first line is the passphrase.", valueName: "number"))
    var passphraseDescriptor: String?

    @Option(
        help: ArgumentHelp("The key file, in place of a passphrase.", valueName: "path"),
        completion: .file())
    var keyFile: String?

    /// The help text of commands that do not ask the agent.
    static let opensFile =
        "Opens the file itself, whatever the agent has open: asks for the passphrase unless what opens it is given."

    var arguments: UnlockArguments {
        UnlockArguments(
            passphraseFile: passphraseFile, passphraseDescriptor: passphraseDescriptor, keyFile: keyFile)
    }
}

/// The service of the items.
struct ServiceOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The program or purpose that the key belongs to; else VAULTCTL_SERVICE, else \"default\".",
            valueName: "name"))
    var service: String?
}

/// The output format.
struct OutputOptions: ParsableArguments {
    @Flag(help: "Print JSON.")
    var json = false
}

/// The option that shows a provider's error text.
struct VerboseOptions: ParsableArguments {
    @Flag(help: "Also show the provider's error text.")
    var verbose = false
}

/// The details of an item beside its secret.
struct DetailOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            When and where it can be read: when-unlocked, after-first-unlock, \
            when-unlocked-this-device-only (the default), after-first-unlock-this-device-only or \
            when-passcode-set-this-device-only.
            """, valueName: "policy"),
        completion: .list(ItemDetails.policyNames))
    var policy: String?

    @Option(help: ArgumentHelp("A text for people.", valueName: "text"))
    var label: String?

    @Option(
        help: ArgumentHelp(
            "An attribute to search by. May be given several times.", valueName: "name=value"))
    var attribute: [String] = []

    @Option(
        help: ArgumentHelp(
            "When it stops being of use: 15m, 1h, 30d, or 2027-01-31T12:00:00Z.", valueName: "time"))
    var expires: String?
}
