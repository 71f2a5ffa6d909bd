import ArgumentParser
import ProgramSupport
import TokenVaultAuth

/// The options of `vaultctl login` that say what the provider is asked for, and where the browser returns to.
struct SignInOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("A scope to ask for. May be given several times.", valueName: "scope"))
    var scope: [String] = []
    @Option(
        help: ArgumentHelp(
            "A parameter of the provider's own, such as prompt=consent. May be given several times.",
            valueName: "name=value"))
    var parameter: [String] = []
    @Option(
        help: ArgumentHelp("The API that the token is for, as some providers call it.", valueName: "name"))
    var audience: String?
    @Option(
        help: ArgumentHelp(
            "The address of an API that the token is for (RFC 8707). May be given several times.",
            valueName: "url"))
    var resource: [String] = []
    @Option(
        name: .customLong("redirect-uri"),
        help: ArgumentHelp(
            "The address on this machine that the browser returns to, as registered at the provider.",
            valueName: "url"))
    var redirectURI: String?
    @Option(
        help: ArgumentHelp(
            "The port that the browser returns to, where the provider accepts only one.",
            valueName: "number"))
    var redirectPort: String?
}

/// What the provider is asked for, as the options say it.
struct SignInChoice {
    let scopes: [String]
    /// By name; an empty value takes back one of the profile or of the provider's preset.
    private(set) var parameters: [String: String] = [:]
    /// `nil` unless given.
    let resources: [String]?
    let redirect: RedirectAddress?
    let port: Int?

    /// Whether the options say where the browser returns to.
    var hasRedirect: Bool { redirect != nil || port != nil }

    /// Checks `options`. Throws a usage failure.
    init(_ options: SignInOptions) throws(CommandFailure) {
        guard !options.scope.contains(where: { $0.contains(" ") }) else {
            throw .usage(
                "--scope has more than one scope", "give each its own, as in --scope openid --scope read")
        }
        scopes = options.scope
        let resources = options.resource.filter { !$0.isEmpty }
        guard resources.allSatisfy(SignInSettings.isResource) else {
            throw .usage("--resource is no address", "give it as in https://api.example.com/")
        }
        self.resources = options.resource.isEmpty ? nil : resources
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
                "a --parameter has a name that cannot be given",
                "use the option for it, such as --scope or --resource, or leave it out")
        }
        guard parameters.updateValue(String(parts[1]), forKey: name) == nil else {
            throw .usage("a --parameter is given twice", "give each name once")
        }
    }

    private static func redirect(_ text: String) throws(CommandFailure) -> RedirectAddress {
        guard let address = RedirectAddress(text) else {
            throw .usage(
                "--redirect-uri is not an address of this machine that can be listened on",
                "give it as in http://127.0.0.1/callback, with 127.0.0.1, [::1] or localhost")
        }
        return address
    }
}
