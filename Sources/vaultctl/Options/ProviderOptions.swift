import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVaultAuth
import TokenVaultPlatform

/// The options of `vaultctl login` that say which provider and which client.
struct ProviderOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The provider's issuer address, letter for letter as in the provider's metadata.",
            valueName: "url"))
    var issuer: String?
    @Option(
        help: ArgumentHelp(
            "A known provider, in place of --issuer: \(ProviderPreset.all.map(\.name).joined(separator: ", ")).",
            valueName: "name"),
        completion: .list(ProviderPreset.all.map(\.name)))
    var provider: String?
    @Option(
        help: ArgumentHelp(
            "With --provider: the directory (tenant) ID at azure, or the host name at auth0, gitlab or okta.",
            valueName: "name"))
    var tenant: String?
    @Option(
        name: .customLong("client-id"),
        help: ArgumentHelp("The ID that the provider gave this client.", valueName: "id"))
    var clientID: String?
    @Option(
        help: ArgumentHelp(
            "The address of the sign-in page, for a provider without metadata.", valueName: "url"))
    var authorizationEndpoint: String?
    @Option(
        help: ArgumentHelp(
            "The address of token requests, for a provider without metadata. The profile keeps the addresses.",
            valueName: "url"))
    var tokenEndpoint: String?
    @Option(
        help: ArgumentHelp(
            "The address of device requests, for a provider without metadata.", valueName: "url"))
    var deviceEndpoint: String?
    @Option(
        help: ArgumentHelp("The address of revocations, for a provider without metadata.", valueName: "url"))
    var revocationEndpoint: String?
    @Option(
        help: ArgumentHelp(
            "An origin besides the issuer's that the sign-in may lead to, such as https://login.example.com. Without the option, a provider with a page at another origin is refused. May be given several times; an empty value removes the stored ones.",
            valueName: "url"))
    var allowOrigin: [String] = []
    @Option(
        name: .customLong("ca-file"),
        help: ArgumentHelp(
            "The file of certificates (PEM) to trust besides the system's. The profile keeps the path; an empty value removes it.",
            valueName: "path"),
        completion: .file())
    var certificateFile: String?
}

/// The provider that the options name.
struct ProviderChoice {
    private(set) var preset: ProviderPreset?
    private(set) var issuer: String?
    private(set) var clientID: String?
    private(set) var endpoints: ProviderEndpoints?
    /// `nil` unless given.
    private(set) var allowedOrigins: [String]?
    /// `nil` unless given; an empty one removes the stored one.
    private(set) var certificateFile: String?

    /// Whether the options name both provider and client.
    var isWhole: Bool { issuer != nil && clientID != nil }
    /// Whether the options name neither.
    var isNone: Bool { issuer == nil && clientID == nil }

    /// Checks `options`. Throws a usage failure.
    init(_ options: ProviderOptions) throws(CommandFailure) {
        for (option, value) in [
            ("--issuer", options.issuer), ("--client-id", options.clientID),
            ("--provider", options.provider), ("--tenant", options.tenant),
        ] where value?.isEmpty == true {
            throw .usage("\(option) is empty", "give it a value, or leave it out")
        }
        guard options.clientID?.utf8.allSatisfy({ (0x20...0x7e).contains($0) }) ?? true else {
            throw .usage("--client-id is not visible ASCII", "copy it from the provider's page")
        }
        clientID = options.clientID
        issuer = options.issuer
        allowedOrigins = options.allowOrigin.isEmpty ? nil : options.allowOrigin.filter { !$0.isEmpty }
        endpoints = try Self.endpoints(options)
        certificateFile = try options.certificateFile.map(Self.certificateFile)
        if let name = options.provider {
            guard options.issuer == nil else {
                throw .usage(
                    "--provider and --issuer both name the provider", "remove one of them")
            }
            let preset = try Self.preset(name)
            issuer = try Self.issuer(of: preset, options.tenant)
            self.preset = preset
            endpoints = endpoints ?? preset.endpoints
        } else if options.tenant != nil {
            throw .usage("--tenant needs --provider", "give --provider as well, or leave it out")
        }
        if let issuer { try Self.check(issuer: issuer) }
        for text in allowedOrigins ?? [] {
            guard let origin = RequestOrigin(address: text), origin.keepsSecrets, origin.text == text else {
                throw .usage(
                    "--allow-origin is not an https origin", "give it as in https://login.example.com")
            }
        }
    }

    /// Returns the absolute path of a readable file, since later commands run elsewhere.
    private static func certificateFile(_ path: String) throws(CommandFailure) -> String {
        guard !path.isEmpty else { return path }
        let file = FilePath(path)
        let options: FileDescriptor.OpenOptions = [.closeOnExec, .nonBlocking]
        guard (try? FileDescriptor.open(file, .readOnly, options: options).closeAfter {}) != nil else {
            throw .usage("the file of --ca-file cannot be read", "give the path of a readable file")
        }
        guard file.isRelative else { return path }
        // Another file could have a relative name later.
        guard let here = try? PosixDirectory(".").absolutePath else {
            throw .usage(
                "--ca-file is relative, and the working directory has no name", "give an absolute path")
        }
        return here.pushing(file).string
    }

    private static func preset(_ name: String) throws(CommandFailure) -> ProviderPreset {
        guard let preset = ProviderPreset.named(name) else {
            throw .usage(
                "there is no such provider",
                "give one of \(ProviderPreset.all.map(\.name).joined(separator: ", ")), or --issuer")
        }
        return preset
    }

    private static func issuer(
        of preset: ProviderPreset, _ tenant: String?
    ) throws(CommandFailure) -> String {
        if let issuer = preset.issuer(for: tenant) { return issuer }
        switch preset.tenant {
        case .none: throw .usage("this --provider has no tenants", "leave --tenant out")
        case .organization:
            throw .usage(
                "--tenant has to be the directory (tenant) ID",
                "give it as in 01234567-89ab-cdef-0123-456789abcdef")
        case .host:
            throw .usage("--tenant has to be the provider's host name", "give it as in id.example.com")
        }
    }

    private static func endpoints(_ options: ProviderOptions) throws(CommandFailure) -> ProviderEndpoints? {
        let others = [
            options.authorizationEndpoint, options.deviceEndpoint, options.revocationEndpoint,
        ]
        guard let token = options.tokenEndpoint else {
            guard others.allSatisfy({ $0 == nil }) else {
                throw .usage(
                    "an endpoint option needs --token-endpoint", "add --token-endpoint URL")
            }
            return nil
        }
        for address in others + [token] {
            guard let address else { continue }
            guard RequestOrigin(address: address)?.keepsSecrets ?? false else {
                throw .usage(
                    "an endpoint is not an https address", "give it as in https://id.example.com/token")
            }
        }
        var endpoints = ProviderEndpoints(token: token)
        endpoints.authorization = options.authorizationEndpoint
        endpoints.deviceAuthorization = options.deviceEndpoint
        endpoints.revocation = options.revocationEndpoint
        return endpoints
    }

    private static func check(issuer: String) throws(CommandFailure) {
        guard issuer.contains("://") else {
            throw .usage("--issuer does not begin with https://", "give the whole address")
        }
        let path = issuer.split(separator: "/", omittingEmptySubsequences: false).dropFirst(3).joined(
            separator: "/")
        guard let origin = RequestOrigin(address: issuer), !issuer.contains("?"), issuer.utf8.count <= 2_048,
            RedirectAddress.isPath(path)
        else {
            throw .usage(
                "--issuer is not the address of a provider",
                "give it as in https://id.example.com, without a query")
        }
        guard !issuer.contains("/.well-known/") else {
            throw .usage(
                "--issuer is the address of the metadata",
                "leave /.well-known/ and what follows out")
        }
        guard origin.keepsSecrets else {
            throw .usage("--issuer is http, which is not encrypted", "give its https address")
        }
    }
}
