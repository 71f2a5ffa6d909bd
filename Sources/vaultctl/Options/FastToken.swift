/// The fast parser for `token`, like ``FastRetrieve``. Scripts call `token` before every request.
enum FastToken {
    /// Parses a `token`; `nil` when ArgumentParser must parse the arguments.
    static func parse(_ arguments: [String]) -> TokenArguments? {
        var result = TokenArguments()
        guard
            let profile = FastOptions.operand(
                of: "token", in: arguments, into: &result, flag: flag, option: option)
        else { return nil }
        result.profile = profile
        return result
    }

    private static func flag(_ name: String) -> WritableKeyPath<TokenArguments, Bool>? {
        switch name {
        case "--renew": \.renew
        case "--id": \.isOfUser
        default: FastOptions.flag(name)
        }
    }

    private static func option(_ name: String) -> WritableKeyPath<TokenArguments, String?>? {
        name == "--min-valid" ? \.minimumValidity : FastOptions.option(name)
    }
}
