/// A parser for one command's arguments. ArgumentParser costs more at start-up than the rest of a short
/// command.
///
/// The parser accepts a subset of ArgumentParser's input, with the same meaning. Help, errors and options
/// with letters beyond ASCII stay with ArgumentParser, which words the errors. A property test compares the
/// two.
enum FastOptions {
    /// Returns the flag `name` that every such command has.
    static func flag<Arguments: FastArguments>(_ name: String) -> WritableKeyPath<Arguments, Bool>? {
        switch name {
        case "--json": \.json
        case "--no-input": \.location.noInput
        case "--read-only": \.location.readOnly
        case "--no-agent": \.location.noAgent
        default: nil
        }
    }

    /// Returns the option `name` that every such command has.
    static func option<Arguments: FastArguments>(_ name: String) -> WritableKeyPath<Arguments, String?>? {
        switch name {
        case "--vault": \.location.vault
        case "--backend": \.location.backend
        case "--collection": \.location.collection
        case "--state-dir": \.location.stateDirectory
        case "--timeout": \.location.timeout
        case "--passphrase-file": \.unlock.passphraseFile
        case "--passphrase-fd": \.unlock.passphraseDescriptor
        case "--key-file": \.unlock.keyFile
        default: nil
        }
    }

    /// Returns the one operand after `command`, and stores known flags and options in `result`. Returns `nil`
    /// when ArgumentParser must parse the arguments.
    static func operand<Arguments>(
        of command: String, in arguments: [String], into result: inout Arguments,
        flag: (String) -> WritableKeyPath<Arguments, Bool>?,
        option: (String) -> WritableKeyPath<Arguments, String?>?
    ) -> String? {
        guard arguments.first == command else { return nil }
        var operands: [String] = []
        var rest = arguments.dropFirst()
        while let argument = rest.popFirst() {
            guard isOption(argument) else {
                operands.append(argument)
                continue
            }
            if argument == "--" {
                operands += rest
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
        return operands.count == 1 ? operands[0] : nil
    }

    /// Whether the argument starts with a dash and is longer than the dash.
    private static func isOption(_ argument: String) -> Bool {
        argument.utf8.first == UInt8(ascii: "-") && argument.utf8.count > 1
    }

    /// Splits `--name=value`.
    private static func split(_ argument: String) -> (name: String, value: String?) {
        // The search is by bytes, because the value may begin with a character that combines with the `=`.
        guard let equals = argument.utf8.firstIndex(of: UInt8(ascii: "=")) else { return (argument, nil) }
        return (
            String(decoding: argument.utf8[..<equals], as: UTF8.self),
            String(decoding: argument.utf8[argument.utf8.index(after: equals)...], as: UTF8.self)
        )
    }
}

/// The arguments of a command that the fast parser accepts.
protocol FastArguments {
    var location: LocationArguments { get set }
    var unlock: UnlockArguments { get set }
    var json: Bool { get set }
}
