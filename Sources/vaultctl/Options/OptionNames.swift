/// The long names of this program's options: what a line about a mistake may name.
enum OptionNames {
    /// Those that take a value.
    static let valued: Set<String> = [
        "attribute", "backend", "credential", "directory", "expires", "export-passphrase-file", "for",
        "format", "from",
        "from-vault", "generate-completion-script", "if-generation", "items", "keep-key-file",
        "keep-passphrase-file", "key-file", "label",
        "map-policy", "new-passphrase-file", "on-conflict", "passphrase-fd", "passphrase-file", "policy",
        "prefix", "ready-fd", "remove-attribute", "samples", "scope", "service", "state-dir", "timeout", "to",
        "to-key-file",
        "to-passphrase-file", "to-vault", "value-size", "vault",
    ]

    /// Those that take none.
    static let flags: Set<String> = [
        "all", "all-or-nothing", "all-services", "binary", "delete", "drop-others", "forget", "help",
        "if-absent",
        "ignore-missing",
        "json", "no-agent", "no-input", "read-only", "recovery", "revoke", "secret-service", "stop",
        "version", "yes",
    ]
}
