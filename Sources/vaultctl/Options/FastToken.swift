/// `token` recognised from the raw arguments, as ``FastRetrieve`` recognises `retrieve`: scripts call it before every request.
enum FastToken {
    /// What `arguments` say if they are a `token`; `nil` when ArgumentParser has to look.
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
        case "--json": \.json
        case "--no-input": \.location.noInput
        case "--read-only": \.location.readOnly
        case "--no-agent": \.location.noAgent
        default: nil
        }
    }

    private static func option(_ name: String) -> WritableKeyPath<TokenArguments, String?>? {
        switch name {
        case "--min-valid": \.minimumValidity
        case "--vault": \.location.vault
        case "--backend": \.location.backend
        case "--state-dir": \.location.stateDirectory
        case "--timeout": \.location.timeout
        case "--passphrase-file": \.unlock.passphraseFile
        case "--passphrase-fd": \.unlock.passphraseDescriptor
        case "--key-file": \.unlock.keyFile
        default: nil
        }
    }
}
