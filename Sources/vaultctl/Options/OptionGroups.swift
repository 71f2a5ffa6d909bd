import ArgumentParser

/// The location of the vault, and the limits on waiting and asking.
struct LocationOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The vault file; else VAULTCTL_VAULT, else tokenvault/default.vault in XDG_DATA_HOME (~/.local/share).",
            valueName: "path"), completion: .file())
    var vault: String?

    @Option(
        help: ArgumentHelp(
            "The store: file, secret-service (the desktop's keyring) or memory; else VAULTCTL_BACKEND, else file.",
            valueName: "backend"),
        completion: .list(["file", "secret-service", "memory"]))
    var backend: String?

    @Option(
        help: ArgumentHelp(
            "The keyring for new items, by its label or alias; else VAULTCTL_COLLECTION, else the default keyring. Existing items are found in every keyring.",
            valueName: "label"))
    var collection: String?

    @Option(
        name: .customLong("state-dir"),
        help: ArgumentHelp(
            "The directory of the device key and the rollback anchor; else VAULTCTL_STATE_DIR, else tokenvault in XDG_STATE_HOME (~/.local/state).",
            valueName: "path"),
        completion: .directory)
    var stateDirectory: String?

    @Option(help: ArgumentHelp("Give up after this time.", valueName: "seconds"))
    var timeout: String?

    @Flag(name: .customLong("no-input"), help: "Never prompt; end with exit status 4 or 5 instead.")
    var noInput = false

    @Flag(
        name: .customLong("read-only"),
        help: "Take no lock and write nothing to the vault. A command that would write fails.")
    var readOnly = false

    @Flag(
        name: .customLong("no-agent"), help: "Open the vault in this process, even while the agent holds it.")
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
        help: ArgumentHelp(
            "The file whose first line is the passphrase; else VAULTCTL_PASSPHRASE_FILE.", valueName: "path"),
        completion: .file())
    var passphraseFile: String?

    @Option(
        name: .customLong("passphrase-fd"),
        help: ArgumentHelp("The open descriptor whose first line is the passphrase.", valueName: "number"))
    var passphraseDescriptor: String?

    @Option(
        help: ArgumentHelp(
            "The key file, in place of a passphrase; else VAULTCTL_KEY_FILE.", valueName: "path"),
        completion: .file())
    var keyFile: String?

    /// The help text of commands that do not ask the agent.
    static let opensFile =
        """
        This command opens the file itself, even while the agent holds the vault. So an unlock method is needed: an \
        option, a variable, the login keyring or a prompt.
        """

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
    @Flag(
        help: ArgumentHelp(
            "Also print the provider's error text. Only visible ASCII is printed, and no text that repeats a secret."
        ))
    var verbose = false
}

/// The details of an item beside its secret.
struct DetailOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            When and where the item can be read: when-unlocked, after-first-unlock, \
            when-unlocked-this-device-only (the default), after-first-unlock-this-device-only or \
            when-passcode-set-this-device-only.
            """, valueName: "policy"),
        completion: .list(ItemDetails.policyNames))
    var policy: String?

    @Option(help: ArgumentHelp("A label for people to read.", valueName: "text"))
    var label: String?

    @Option(
        help: ArgumentHelp(
            "An attribute to search by. May be given several times.", valueName: "name=value"))
    var attribute: [String] = []

    @Option(
        help: ArgumentHelp(
            "When the secret expires: 90s, 15m, 1h, 30d, 2027-01-31T12:00:00Z or never. The expiry is only shown: an expired secret stays readable.",
            valueName: "time"))
    var expires: String?
}
