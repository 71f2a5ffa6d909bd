import ArgumentParser
import ProgramSupport
import Synchronization

/// ArgumentParser, adapted to the contract of `vaultctl`. Errors are one line and never repeat a value.
/// ArgumentParser prints nothing by itself. `--name=` means an empty value.
enum CommandLineParser {
    enum Outcome {
        /// A command to execute.
        case command(any VaultCommand)
        /// Help, a version or a completion script that was asked for.
        case text(String)
        /// Help after a call without a command.
        case helpWanted(String)
    }

    /// Parses `arguments`.
    static func parse(_ arguments: [String]) throws(CommandFailure) -> Outcome {
        CommandPage.isNeeded.store(mayPrintPage(for: arguments), ordering: .relaxed)
        if arguments.first == "help" { try checkTopic(arguments.dropFirst()) }
        try checkSingleDashes(arguments)
        do {
            var parsed = try VaultControl.parseAsRoot(separatingValues(arguments))
            if let command = parsed as? any VaultCommand { return .command(command) }
            if groups.contains(where: { $0 == type(of: parsed) }) {
                return .helpWanted(VaultControl.helpMessage(for: type(of: parsed)))
            }
            // The help command of ArgumentParser throws the help.
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

    /// The commands that only have subcommands.
    static let groups: [any ParsableCommand.Type] = [
        VaultControl.self, Slot.self, Device.self, Keyring.self,
    ]

    /// Whether the answer to `arguments` may contain the page of a command. The names of the groups are repeated here, because
    /// a look at a configuration makes its page.
    private static func mayPrintPage(for arguments: [String]) -> Bool {
        guard let first = arguments.first, !["slot", "device", "keyring"].contains(first) else { return true }
        return arguments.contains { $0 == "help" || $0 == "-h" || $0.hasPrefix("--help") || $0 == dumpOption }
    }

    /// The option that prints the help of all commands as JSON.
    private static let dumpOption = "--experimental-dump-help"

    /// Rejects words with a single dash, except `-h` and `-`. ArgumentParser would take `-hash` for `-h` with
    /// more letters, print the help and report success. A server's nonce may begin with a dash.
    private static func checkSingleDashes(_ arguments: [String]) throws(CommandFailure) {
        var previous = ""
        for argument in arguments.prefix(while: { $0 != "--" }) {
            defer { previous = argument }
            guard argument.hasPrefix("-"), !argument.hasPrefix("--"), argument != "-", argument != "-h",
                previous != "--nonce"
            else { continue }
            throw .usage("there is no such option", "write -- before a key that starts with a dash")
        }
    }

    /// Rejects unknown help topics, for which ArgumentParser would print the program's help and report
    /// success.
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

    /// Returns the `retrieve` arguments as ArgumentParser parses them; `nil` for errors and other commands. A
    /// test compares them with the fast path and passes a smaller `root`.
    static func retrieveArguments(
        _ arguments: [String], root: any ParsableCommand.Type = VaultControl.self
    ) -> RetrieveArguments? {
        let parsed = try? root.parseAsRoot(separatingValues(arguments))
        return (parsed as? Retrieve)?.arguments
    }

    /// Returns the same as ``retrieveArguments(_:root:)``, for `token`.
    static func tokenArguments(
        _ arguments: [String], root: any ParsableCommand.Type = VaultControl.self
    ) -> TokenArguments? {
        let parsed = try? root.parseAsRoot(separatingValues(arguments))
        return (parsed as? Token)?.arguments
    }

    /// Splits `--name=value` into two arguments where ArgumentParser would misread the option.
    ///
    /// ArgumentParser takes `--label=` for `--label`, uses the next argument as its value, and takes
    /// `--json=` for `--json`. Here `--label=` gets an empty value, and `--json=` is changed so that
    /// ArgumentParser rejects it.
    ///
    /// ArgumentParser also misses a `=` that forms one character with the beginning of the value.
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

    /// Returns the name and the value of an option whose `=` forms one character with the beginning of the
    /// value.
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
