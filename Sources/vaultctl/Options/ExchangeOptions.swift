import ArgumentParser
import ProgramSupport
import TokenVaultAuth

/// The options of `vaultctl token` for a token of another service.
struct ExchangeOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Exchange the token for one of this service (RFC 8693), and print the new one, which is not stored.",
            valueName: "name"))
    var audience: String?
    @Option(
        help: ArgumentHelp(
            "Exchange the token for one of the service at this address. May be given several times.",
            valueName: "url"))
    var resource: [String] = []
    @Option(
        help: ArgumentHelp(
            "A scope of the exchanged token. May be given several times.", valueName: "scope"))
    var scope: [String] = []

    /// Checks the options. Returns `nil` when no exchange is asked for. Throws a usage failure.
    func target() throws(CommandFailure) -> ExchangeTarget? {
        guard audience != nil || !resource.isEmpty || !scope.isEmpty else { return nil }
        guard audience?.isEmpty != true else {
            throw .usage("--audience is empty", "give it a value, or leave it out")
        }
        guard resource.allSatisfy(SignInSettings.isResource) else {
            throw .usage("--resource is not an absolute address", "give it as in https://api.example.com/")
        }
        guard scope.allSatisfy(SignInSettings.isScope) else {
            throw .usage(
                "--scope has more than one scope, or a character that no scope has",
                "repeat the option, as in --scope openid --scope read")
        }
        return ExchangeTarget(audience: audience, resources: resource, scopes: scope)
    }
}

/// The service that a token is exchanged for.
struct ExchangeTarget: Equatable {
    let audience: String?
    let resources: [String]
    let scopes: [String]
}
