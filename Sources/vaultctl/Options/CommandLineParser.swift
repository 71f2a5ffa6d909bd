import ArgumentParser
import ProgramSupport

/// ArgumentParser, with what it does differently from our contract mended: errors are one line and never
/// repeat a value, nothing is printed behind our back, `--name=` means an empty value.
enum CommandLineParser {
    enum Outcome {
        /// A command to execute.
        case command(any VaultCommand)
        /// Help, a version or a completion script that was asked for.
        case text(String)
        /// Help for somebody who gave no command.
        case helpWanted(String)
    }

    /// What `arguments` ask for.
    static func parse(_ arguments: [String]) throws(CommandFailure) -> Outcome {
        if arguments.first == "help" { try checkTopic(arguments.dropFirst()) }
        try checkSingleDashes(arguments)
        do {
            var parsed = try VaultControl.parseAsRoot(separatingValues(arguments))
            if let command = parsed as? any VaultCommand { return .command(command) }
            if [VaultControl.self, Slot.self, Device.self].contains(where: { $0 == type(of: parsed) }) {
                return .helpWanted(VaultControl.helpMessage(for: type(of: parsed)))
            }
            // ArgumentParser's own help command, which throws the help.
            try parsed.run()
            return .text("")
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            if VaultControl.exitCode(for: error) == .success {
                return .text(VaultControl.fullMessage(for: error))
            }
            throw UsageError.failure(for: error, in: arguments)
        }
    }

    /// `-h` is the only word with a single dash. ArgumentParser would take `-hash` for `-h` with other
    /// letters behind it, print the help and call that a success.
    private static func checkSingleDashes(_ arguments: [String]) throws(CommandFailure) {
        for argument in arguments.prefix(while: { $0 != "--" })
        where argument.hasPrefix("-") && !argument.hasPrefix("--") && argument != "-" && argument != "-h" {
            throw .usage("there is no such option", "a key that starts with a dash follows --")
        }
    }

    /// ArgumentParser shows the program's help for a topic it does not know, and calls that a success.
    private static func checkTopic(_ words: ArraySlice<String>) throws(CommandFailure) {
        var command: any ParsableCommand.Type = VaultControl.self
        for word in words {
            guard let next = command.configuration.subcommands.first(where: { $0._commandName == word })
            else {
                throw UsageError.noCommand(Array(words), "see \"vaultctl help\"")
            }
            command = next
        }
    }

    /// `retrieve` as ArgumentParser understands `arguments`; `nil` when it refuses them or they are
    /// something else. For the test that compares it with the fast path, which brings a smaller root.
    static func retrieveArguments(
        _ arguments: [String], root: any ParsableCommand.Type = VaultControl.self
    ) -> RetrieveArguments? {
        let parsed = try? root.parseAsRoot(separatingValues(arguments))
        return (parsed as? Retrieve)?.arguments
    }

    /// As ``retrieveArguments(_:root:)``, of `token`.
    static func tokenArguments(
        _ arguments: [String], root: any ParsableCommand.Type = VaultControl.self
    ) -> TokenArguments? {
        let parsed = try? root.parseAsRoot(separatingValues(arguments))
        return (parsed as? Token)?.arguments
    }

    /// ArgumentParser takes `--label=` for `--label` and would swallow the next argument as its value, and
    /// `--json=` for `--json`. Written as two arguments, the second one empty, the first means what it
    /// says; the second is left to be refused. It does not find the `=` before a value that begins with what joins the character
    /// before it either.
    static func separatingValues(_ arguments: [String]) -> [String] {
        let equals = UInt8(ascii: "=")
        guard arguments.contains(where: { $0.utf8.last == equals || joined($0) != nil }) else {
            return arguments
        }
        var result: [String] = []
        var isLiteral = false
        for argument in arguments {
            if argument == "--" { isLiteral = true }
            let name = argument.dropFirst(2).dropLast()
            if !isLiteral, let (name, value) = joined(argument), OptionNames.valued.contains(name) {
                result += ["--\(name)", value]
            } else if isLiteral || !argument.hasPrefix("--") || argument.last != "=" {
                result.append(argument)
            } else if OptionNames.valued.contains(String(name)) {
                result += ["--\(name)", ""]
            } else if OptionNames.flags.contains(String(name)) {
                result.append(argument + "=")
            } else {
                result.append(argument)
            }
        }
        return result
    }

    /// The name and the value of an option, where the value begins with what joins the `=` to one character.
    private static func joined(_ argument: String) -> (name: String, value: String)? {
        let bytes = argument.utf8
        guard bytes.starts(with: "--".utf8), let equals = bytes.firstIndex(of: UInt8(ascii: "=")),
            argument.firstIndex(of: "=") != equals, bytes.index(after: equals) != bytes.endIndex
        else { return nil }
        return (
            String(decoding: bytes[bytes.index(bytes.startIndex, offsetBy: 2)..<equals], as: UTF8.self),
            String(decoding: bytes[bytes.index(after: equals)...], as: UTF8.self)
        )
    }
}
