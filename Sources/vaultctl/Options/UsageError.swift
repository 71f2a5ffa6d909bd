import ArgumentParser
import ProgramSupport

/// One-line errors for wrong command lines.
///
/// ArgumentParser's own messages repeat the arguments. So only the kind of its error and names of this
/// program's options are used.
enum UsageError {
    static func failure(for error: any Error, in arguments: [String] = []) -> CommandFailure {
        let mirror = Mirror(reflecting: error)
        let stack = mirror.descendant("commandStack") as? [Any.Type] ?? []
        let command = stack.compactMap { names[ObjectIdentifier($0)] }.joined(separator: " ")
        let help = command.isEmpty ? "see \"vaultctl help\"" : "see \"vaultctl help \(command)\""
        guard let parserError = mirror.descendant("parserError") else {
            return .usage("the arguments are not understood", help)
        }
        let kind = Mirror(reflecting: parserError).children.first
        // An enum case without associated values has no children; its description is its name.
        let name = kind?.label ?? String(describing: parserError)
        let option = kind.flatMap { optionName(in: $0.value, depth: 4) }
        let isInGroup = command.isEmpty || stack.last.map { groups.contains(ObjectIdentifier($0)) } ?? false
        switch name {
        case "unknownOption", "invalidOption", "nonAlphanumericShortOption":
            let hint = command.isEmpty ? "options follow the command; \(help)" : help
            return noOption(in: arguments, among: options(of: stack.last), hint)
        case "missingValueForOption", "missingValueOrUnknownCompositeOption":
            return .usage("\(option ?? "an option") needs a value", help)
        case "unexpectedValueForOption":
            return .usage("\(option ?? "an option") takes no value", help)
        case "unexpectedExtraValues":
            if isInGroup { return noCommand(arguments, help) }
            // The value of an unknown option is one argument too many.
            let known = options(of: stack.last)
            return unknownOption(in: arguments, among: known) != nil
                ? noOption(in: arguments, among: known, help)
                : .usage("there is an unexpected argument; a secret is never an argument", help)
        case "noValue":
            return .usage("an argument is missing", help)
        case "unsupportedShell", "completionScriptRequested":
            return .usage("there are no completions for that shell", "use bash, zsh or fish")
        default:
            return .usage("the arguments are not understood", help)
        }
    }

    /// Returns the failure for an unknown option. The failure suggests a similar option of this program and does not
    /// repeat the argument.
    private static func noOption(
        in arguments: [String], among known: [String], _ hint: String
    ) -> CommandFailure {
        if let typed = unknownOption(in: arguments, among: known), secretNames.contains(typed) {
            return .usage(
                "there is no such option here: a secret is never an argument", "pipe it in; \(hint)")
        }
        guard let meant = likelyOption(meantIn: arguments, among: known) else {
            return .usage("there is no such option here", hint)
        }
        return .usage("there is no such option here", "did you mean --\(meant)? \(hint)")
    }

    /// Returns the failure for an unknown command. The failure suggests a similar command of this program and
    /// does not repeat the argument.
    static func noCommand(_ arguments: [String], _ help: String) -> CommandFailure {
        var commands = VaultControl.configuration.subcommands
        var path = ""
        for word in arguments {
            if word == "version", path.isEmpty {
                return .usage("there is no such command", "did you mean \"vaultctl --version\"? \(help)")
            }
            guard let known = commands.first(where: { $0._commandName == word }) else {
                let names = commands.map { $0._commandName }
                let other = otherNames[word].flatMap { names.contains($0) ? $0 : nil }
                guard let meant = other ?? SimilarName.nearest(to: word, among: names) else { break }
                return .usage(
                    "there is no such command", "did you mean \"vaultctl \(path)\(meant)\"? \(help)")
            }
            commands = known.configuration.subcommands
            path += "\(word) "
        }
        return .usage("there is no such command", help)
    }

    /// Returns the names of the options of `command`.
    private static func options(of command: Any.Type?) -> [String] {
        guard let command = command as? any ParsableCommand.Type else { return [] }
        // The page may name options of other commands.
        let page = VaultControl.helpMessage(for: command)
        let help = page.split(separator: "\nUSAGE: ", maxSplits: 1).last ?? ""
        return OptionNames.valued.union(OptionNames.flags).sorted().filter { name in
            help.contains("--\(name) ") || help.contains("--\(name)\n")
        }
    }

    /// Returns the option that is most similar to the first one not among `known`. The result is a name of this program,
    /// not the argument.
    private static func likelyOption(meantIn arguments: [String], among known: [String]) -> String? {
        return unknownOption(in: arguments, among: known).flatMap { name in
            otherOptions[name].flatMap { known.contains($0) ? $0 : nil }
                ?? SimilarName.nearest(to: name, among: known)
        }
    }

    private static func unknownOption(in arguments: [String], among known: [String]) -> String? {
        let words = arguments.prefix { $0 != "--" }.filter { $0.hasPrefix("--") }
        let typed = words.map { String($0.dropFirst(2).prefix { $0 != "=" }) }
        return typed.first { !known.contains($0) }
    }

    /// Names that other programs give to an option with a secret.
    private static let secretNames: Set = ["value", "secret", "token", "data"]

    /// Names in other programs for this program's options.
    private static let otherOptions = [
        "format": "json", "output": "json", "passphrase": "passphrase-file", "password": "passphrase-file",
        "key": "key-file",
    ]

    /// Names in other programs for this program's commands.
    private static let otherNames = [
        "get": "retrieve", "show": "retrieve", "read": "retrieve", "cat": "retrieve", "fetch": "retrieve",
        "put": "store", "save": "store", "add": "store", "insert": "store", "ls": "list", "rm": "delete",
        "remove": "delete", "erase": "delete", "mv": "rename", "move": "rename", "create": "init",
        "signin": "login", "auth": "login", "signout": "logout", "initialize": "init", "initialise": "init",
    ]

    private static let names: [ObjectIdentifier: String] = Dictionary(
        uniqueKeysWithValues: (VaultControl.configuration.subcommands
            + Slot.configuration.subcommands + Device.configuration.subcommands
            + Keyring.configuration.subcommands).map {
                (ObjectIdentifier($0), $0._commandName)
            })

    private static let groups = Set(CommandLineParser.groups.map { ObjectIdentifier($0) })

    /// Returns the first long option name of this program in an error's value.
    private static func optionName(in value: Any, depth: Int) -> String? {
        let mirror = Mirror(reflecting: value)
        if let child = mirror.children.first, child.label == "long", let name = child.value as? String {
            let isOurs = OptionNames.valued.contains(name) || OptionNames.flags.contains(name)
            return isOurs ? "--\(name)" : nil
        }
        guard depth > 0 else { return nil }
        for child in mirror.children {
            if let name = optionName(in: child.value, depth: depth - 1) { return name }
        }
        return nil
    }
}
