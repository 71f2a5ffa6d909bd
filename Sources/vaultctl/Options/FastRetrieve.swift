/// `retrieve` recognised from the raw arguments. Scripts call it in loops, and ArgumentParser's start-up
/// costs more than everything else it does.
///
/// Takes what ArgumentParser would take, in the same meaning, and leaves all else to it: help, mistakes
/// (it words the errors) and options with letters beyond ASCII. A property test holds the two together.
enum FastRetrieve {
    /// What `arguments` say if they are a `retrieve`; `nil` when ArgumentParser has to look.
    static func parse(_ arguments: [String]) -> RetrieveArguments? {
        guard arguments.first == "retrieve" else { return nil }
        var result = RetrieveArguments()
        var keys: [String] = []
        var rest = arguments.dropFirst()
        while let argument = rest.popFirst() {
            guard isOption(argument) else {
                keys.append(argument)
                continue
            }
            if argument == "--" {
                keys += rest
                break
            }
            let (name, attached) = split(argument)
            if let flag = flag(name) {
                guard attached == nil else { return nil }
                result[keyPath: flag] = true
                continue
            }
            guard let option = option(name) else { return nil }
            if let attached {
                result[keyPath: option] = attached
            } else {
                guard let value = rest.popFirst(), !isOption(value) else { return nil }
                result[keyPath: option] = value
            }
        }
        guard keys.count == 1 else { return nil }
        result.key = keys[0]
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

    /// Whether it starts with a dash and is more than one.
    private static func isOption(_ argument: String) -> Bool {
        argument.utf8.first == UInt8(ascii: "-") && argument.utf8.count > 1
    }

    /// `--name=value` taken apart.
    private static func split(_ argument: String) -> (name: String, value: String?) {
        guard let equals = argument.firstIndex(of: "=") else { return (argument, nil) }
        return (String(argument[..<equals]), String(argument[argument.index(after: equals)...]))
    }
}
