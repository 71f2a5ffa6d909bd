/// A command's line taken apart without ArgumentParser, whose start-up costs more than everything else that a short command
/// does.
///
/// Takes what ArgumentParser would take, in the same meaning, and leaves all else to it: help, mistakes (it words the errors)
/// and options with letters beyond ASCII. A property test holds the two together.
enum FastOptions {
    /// A flag that every command has that is recognised so.
    static func flag<Arguments: FastArguments>(_ name: String) -> WritableKeyPath<Arguments, Bool>? {
        switch name {
        case "--json": \.json
        case "--no-input": \.location.noInput
        case "--read-only": \.location.readOnly
        case "--no-agent": \.location.noAgent
        default: nil
        }
    }

    /// An option that every command has that is recognised so.
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

    /// The one operand behind `command`, with what `flag` and `option` know put into `result`; `nil` when ArgumentParser has
    /// to look.
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

    /// Whether it starts with a dash and is more than one.
    private static func isOption(_ argument: String) -> Bool {
        argument.utf8.first == UInt8(ascii: "-") && argument.utf8.count > 1
    }

    /// `--name=value` taken apart.
    private static func split(_ argument: String) -> (name: String, value: String?) {
        // By bytes: a value may begin with what joins the character before it.
        guard let equals = argument.utf8.firstIndex(of: UInt8(ascii: "=")) else { return (argument, nil) }
        return (
            String(decoding: argument.utf8[..<equals], as: UTF8.self),
            String(decoding: argument.utf8[argument.utf8.index(after: equals)...], as: UTF8.self)
        )
    }
}

/// What the line of a command says that is recognised from the raw arguments.
protocol FastArguments {
    var location: LocationArguments { get set }
    var unlock: UnlockArguments { get set }
    var json: Bool { get set }
}
