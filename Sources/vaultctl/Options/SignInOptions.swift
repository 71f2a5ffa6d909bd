import ArgumentParser
import ProgramSupport
import TokenVaultAuth

/// The options of `vaultctl login` for the request to the provider and for the redirect address.
struct SignInOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("A scope to request. May be given several times.", valueName: "scope"))
    var scope: [String] = []
    @Option(
        help: ArgumentHelp(
            "A parameter of the provider's own for the sign-in, or with --client-credentials for the token requests, such as prompt=consent. May be given several times; an empty value removes a stored one. With response_mode=form_post, the provider's answer comes in a form instead of the address.",
            valueName: "name=value"))
    var parameter: [String] = []
    @Option(
        help: ArgumentHelp(
            "The API that the token is for, at providers that have the parameter \"audience\".",
            valueName: "name")
    )
    var audience: String?
    @Option(
        help: ArgumentHelp(
            "The address of an API that the token is for (RFC 8707), sent with every request for tokens. May be given several times; an empty value removes the stored ones.",
            valueName: "url"))
    var resource: [String] = []
    @Option(
        help: ArgumentHelp(
            "Another client of yours that the ID token may also be for, or be issued to. May be given several times; an empty value removes the stored ones.",
            valueName: "id"))
    var trustedAudience: [String] = []
    @Option(
        name: .customLong("redirect-uri"),
        help: ArgumentHelp(
            "The address on this machine that the browser returns to, as registered at the provider. The address is http://, then 127.0.0.1, [::1] or localhost, with or without a port and a path. The profile keeps the address.",
            valueName: "url"))
    var redirectURI: String?
    @Option(
        help: ArgumentHelp(
            "The port that the browser returns to, if the provider accepts only one; 0 (the default) for any free port.",
            valueName: "number"))
    var redirectPort: String?
}

/// The checked values of ``SignInOptions``.
struct SignInChoice {
    let scopes: [String]
    /// By name; an empty value removes one of the profile or of the preset.
    private(set) var parameters: [String: String] = [:]
    /// `nil` unless given.
    let resources: [String]?
    /// `nil` unless given.
    let trustedAudiences: [String]?
    let redirect: RedirectAddress?
    let port: Int?

    /// Whether the options say where the browser returns to.
    var hasRedirect: Bool { redirect != nil || port != nil }

    /// Checks `options`. Throws a usage failure.
    init(_ options: SignInOptions) throws(CommandFailure) {
        guard !options.scope.contains(where: { $0.contains(" ") }) else {
            throw .usage(
                "--scope has more than one scope", "repeat the option, as in --scope openid --scope read")
        }
        guard options.scope.allSatisfy(SignInSettings.isScope) else {
            throw .usage("--scope has a character that no scope has", "use visible ASCII without quotes")
        }
        scopes = options.scope
        let resources = options.resource.filter { !$0.isEmpty }
        guard resources.allSatisfy(SignInSettings.isResource) else {
            throw .usage("--resource is not an absolute address", "give it as in https://api.example.com/")
        }
        self.resources = options.resource.isEmpty ? nil : resources
        trustedAudiences =
            options.trustedAudience.isEmpty ? nil : options.trustedAudience.filter { !$0.isEmpty }
        port = try options.redirectPort.map { (text) throws(CommandFailure) in
            try Settings.number(text, named: "--redirect-port", 0...65_535)
        }
        redirect = try options.redirectURI.map(Self.redirect)
        guard port == nil || (redirect?.port ?? 0) == 0 else {
            throw .usage("--redirect-uri has a port already", "leave --redirect-port out")
        }
        for pair in options.parameter + (options.audience.map { ["audience=\($0)"] } ?? []) {
            try add(pair)
        }
    }

    private mutating func add(_ pair: String) throws(CommandFailure) {
        let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else {
            throw .usage("a --parameter has no equals sign", "write it as NAME=VALUE")
        }
        let name = String(parts[0])
        guard SignInSettings.isParameter(name) else {
            throw .usage(
                "a --parameter with this name cannot be given",
                "use its own option, such as --scope or --resource, or leave it out")
        }
        guard parts[1].isEmpty || SignInSettings.isValue(String(parts[1]), of: name) else {
            throw .usage(
                "response_mode must be query or form_post", "use one of them, or leave the parameter out")
        }
        guard parameters.updateValue(String(parts[1]), forKey: name) == nil else {
            throw .usage("a --parameter is given twice", "give each name once")
        }
    }

    private static func redirect(_ text: String) throws(CommandFailure) -> RedirectAddress {
        guard let address = RedirectAddress(text) else {
            throw .usage(
                "--redirect-uri is not a usable address of this machine",
                "give it as in http://localhost:8400/signed-in, with 127.0.0.1, [::1] or localhost")
        }
        return address
    }
}
