import ArgumentParser
import ProgramSupport
import Synchronization

/// The page of a command: what `vaultctl help COMMAND` prints above the usage. `Scripts/manual.py` makes the manual page from
/// the same text.
struct CommandPage {
    /// The exit statuses of a command that need no text of its own.
    enum StandardStatuses {
        /// A command that only has subcommands.
        case group
        /// A command without `--timeout` that opens no vault.
        case plain
        /// A command that opens no vault, or opens one without unlocking it.
        case waiting
        /// A command that unlocks a vault, and accepts a copy of it.
        case copy
        /// A command that unlocks a vault.
        case vault
        /// A command that reads or writes items.
        case items
    }

    let abstract: String
    /// The paragraphs, separated by blank lines. The terminal's width breaks lines that begin without a space.
    let description: String
    /// The commands, each with its continuation lines.
    let examples: [String]
    /// The texts for statuses that mean something particular here. With `nil`, the command never has the status.
    var statuses: KeyValuePairs<ExitStatus, String?> = [:]
    let standard: StandardStatuses

    /// Whether a page may be printed. ArgumentParser takes the pages of all commands for each call, and making the texts takes
    /// about as long as the rest of the parsing.
    static let isNeeded = Atomic(true)

    /// The description, the examples and the exit statuses.
    var text: String {
        var text = description
        text += "\n\nExamples:"
        for example in examples {
            text += "\n  "
            text += example.utf8.contains(Self.newline) ? Self.indented(example) : example
        }
        text += "\n\nExit status:"
        for status in ExitStatus.allCases {
            guard let meaning = meaning(of: status) else { continue }
            Self.append(status, meaning, to: &text)
        }
        return text
    }

    private func meaning(of status: ExitStatus) -> String? {
        for (other, text) in statuses where other == status { return text }
        return standard.meaning(of: status)
    }

    private static let newline = UInt8(ascii: "\n")

    private static func indented(_ example: String) -> String {
        example.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\n  ")
    }

    // The text begins behind the number. ArgumentParser breaks a line of 80 columns or more, and loses the indentation.
    private static let indentation = "\n      "
    private static let columns = 73

    /// Appends a status, in lines of fewer than 80 columns.
    private static func append(_ status: ExitStatus, _ meaning: String, to text: inout String) {
        let number = String(status.rawValue)
        text += number.utf8.count > 1 ? "\n  " : "\n   "
        text += number
        text += "  "
        var rest = meaning[...]
        while rest.utf8.count > columns {
            // A line may be full right before a space.
            let limit = rest.utf8.index(rest.startIndex, offsetBy: columns + 1)
            guard let space = rest.utf8[..<limit].lastIndex(of: UInt8(ascii: " ")) else { break }
            text += rest[..<space]
            text += indentation
            rest = rest[rest.utf8.index(after: space)...]
        }
        text += rest
    }
}

extension CommandPage.StandardStatuses {
    /// Returns the usual meaning of `status`; `nil` for a status that such a command never has.
    fileprivate func meaning(of status: ExitStatus) -> String? {
        switch (status, self) {
        case (.done, .group): "The subcommand has succeeded."
        case (.usage, .group): "The subcommand is missing, or the command line is wrong."
        case (_, .group): nil
        case (.done, _): "Done."
        case (.failure, _): "Another failure. The error line gives the reason."
        case (.usage, _): "The command line is wrong."
        case (_, .plain): nil
        case (.timedOut, _): "The command timed out, or the outcome is unknown. The error line says which."
        case (_, .waiting): nil
        case (.locked, _): "The vault is locked, or no unlock method was given."
        case (.refused, _): "The passphrase or key is wrong, or does not permit this."
        case (.damaged, _): "The vault is damaged, an old copy, or another vault than expected."
        case (.unavailable, .items): "The vault, the keyring or the agent is not available."
        case (.unavailable, _): "The vault or the keyring is not available."
        case (.conflict, .vault), (.conflict, .items): "The same vault is at two paths."
        case (.wrongDevice, .items): "The item belongs to another device."
        case (.notFound, _), (.wrongDevice, _), (.conflict, .copy): nil
        }
    }
}

extension CommandConfiguration {
    /// Creates the configuration of a command with a page, which is left out when no page is printed.
    init(
        commandName: String? = nil, page: CommandPage, shouldDisplay: Bool = true,
        subcommands: [any ParsableCommand.Type] = []
    ) {
        self.init(
            commandName: commandName, abstract: page.abstract,
            discussion: CommandPage.isNeeded.load(ordering: .relaxed) ? page.text : "",
            shouldDisplay: shouldDisplay, subcommands: subcommands)
    }
}
