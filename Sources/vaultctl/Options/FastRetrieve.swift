/// `retrieve` recognised from the raw arguments. Scripts call it in loops.
enum FastRetrieve {
    /// What `arguments` say if they are a `retrieve`; `nil` when ArgumentParser has to look.
    static func parse(_ arguments: [String]) -> RetrieveArguments? {
        var result = RetrieveArguments()
        guard
            let key = FastOptions.operand(
                of: "retrieve", in: arguments, into: &result, flag: flag, option: option)
        else { return nil }
        result.key = key
        return result
    }

    private static func flag(_ name: String) -> WritableKeyPath<RetrieveArguments, Bool>? {
        switch name {
        case "--json": \.json
        case "--no-input": \.location.noInput
        case "--read-only": \.location.readOnly
        case "--no-agent": \.location.noAgent
        default: nil
        }
    }

    private static func option(_ name: String) -> WritableKeyPath<RetrieveArguments, String?>? {
        switch name {
        case "--service": \.service
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
