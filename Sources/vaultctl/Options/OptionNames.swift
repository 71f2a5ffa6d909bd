/// The long names of this program's options, which error lines may contain.
enum OptionNames {
    /// The options that take a value.
    static let valued: Set<String> = [
        "allow-origin", "attribute", "audience", "authorization-endpoint", "backend", "ca-file",
        "client-authentication",
        "client-id", "client-key-file", "client-key-id", "client-secret-fd",
        "client-secret-file", "client-team",
        "collection",
        "copy-key-file", "copy-passphrase-file", "credential",
        "device-endpoint", "directory", "expires", "export-passphrase-file", "for", "format", "from",
        "from-vault",
        "generate-completion-script", "headers-for", "if-generation", "issuer", "items", "keep-key-file",
        "keep-passphrase-file", "keep-values", "key-file", "keyring-items", "label", "map-policy", "method",
        "min-valid",
        "new-passphrase-file", "nonce",
        "on-conflict", "parameter", "passphrase-fd", "passphrase-file", "policy", "prefix", "provider",
        "ready-fd",
        "redirect-port",
        "redirect-uri",
        "remove-attribute", "report", "resource", "revocation-endpoint", "samples", "scope", "seconds",
        "service", "state-dir",
        "tenant", "timeout", "to", "token-endpoint",
        "to-key-file",
        "to-passphrase-file", "to-vault", "trusted-audience", "value-size", "vault",
    ]

    /// The options without a value.
    static let flags: Set<String> = [
        "all", "all-or-nothing", "all-services", "allow-empty", "binary", "browser", "client-credentials",
        "delete",
        "device", "dpop",
        "drop-others", "dry-run", "forget", "forget-profile", "help", "id", "if-absent", "ignore-missing",
        "ignore-unknown",
        "json", "no-agent", "no-browser", "no-dpop", "no-input", "no-revoke", "quiet", "read-only",
        "recovery",
        "renew", "revoke", "secret-service", "stop", "verbose", "version", "yes",
    ]
}
