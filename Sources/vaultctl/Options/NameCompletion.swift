import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform
import VaultAgent

/// The names of items and profiles that a shell offers as completions.
///
/// Only an unlocked vault gives names: one that the agent holds unlocked, or one that a key file opens. Completing
/// a word prompts for nothing, derives no key from a passphrase, starts no agent and writes nothing. When the
/// vault is locked, broken or missing, there are no names.
enum NameCompletion {
    /// Completes with the keys of the service on the command line.
    static let keys = CompletionKind.custom { words, _, _ in
        let line = CommandWords(words)
        guard let service = try? Settings.service(line.service) else { return [] }
        return offers(names(of: service, "", line).map { $0.name })
    }

    /// Completes with the profiles that `vaultctl login` made.
    static let profiles = CompletionKind.custom { words, _, _ in
        offers(
            names(of: ProfileStore.service, ProfileStore.profiles, CommandWords(words)).map(
                ProfileStore.name(of:)))
    }

    /// How long a shell may wait for completions.
    private static let timeout = "2"

    private static func names(of service: String, _ prefix: String, _ line: CommandWords) -> [TokenKey] {
        guard let storage = try? unlockedStorage(of: service, line),
            let listing = try? storage.list(TokenQuery(prefix: prefix)),
            (try? storage.lockState()) == .unlocked
        else { return [] }
        return listing.items.map(\.key)
    }

    /// Returns the names that can be completed, as the requesting shell expects them. A shell reads one name a line, and
    /// would take a name that begins with a dash for an option.
    private static func offers(_ names: [String]) -> [String] {
        let shell = CompletionShell.requesting?.rawValue
        return names.filter { name in
            !name.hasPrefix("-")
                && name.unicodeScalars.allSatisfy { !hidden.contains($0.properties.generalCategory) }
        }.map { escaped($0, for: shell) }
    }

    /// Characters that end a line, control the terminal or are not shown.
    private static let hidden: [Unicode.GeneralCategory] = [
        .control, .format, .lineSeparator, .paragraphSeparator,
    ]

    /// Returns `name` so that the completion script of `shell` offers it unchanged. The script of bash expands each name
    /// as a word of a command, with commands and variables in it. That of zsh takes a colon for the end of a name.
    static func escaped(_ name: String, for shell: String?) -> String {
        switch shell {
        case "bash": name.shellWord
        case "zsh": name.replacing("\\", with: "\\\\").replacing(":", with: "\\:")
        default: name
        }
    }

    /// Returns the storage of `service` when it can be opened without a prompt; `nil` for none.
    private static func unlockedStorage(
        of service: String, _ line: CommandWords
    ) throws(CommandFailure) -> (any BlockingTokenStorage)? {
        let console = Console()
        console.isSilent = true
        var location = line.location
        location.noInput = true
        location.timeout = timeout
        let session = try Session(console, location, line.unlock)
        switch session.backend {
        // A call to the keyring's service would start it.
        case .memory, .secretService: return nil
        case .file: break
        }
        if let agent = try session.agentVault() { return agent.storage(service: service) }
        guard case .keyFile = session.unlock else { return nil }
        location.readOnly = true
        let vault = try Session(console, location, line.unlock).openUnlockedVault(repairing: false)
        return FileTokenStorage(vault, service: service).blocking
    }
}

/// The options of an unfinished command line that say where the vault is and which key file opens it.
struct CommandWords {
    private(set) var location = LocationArguments()
    private(set) var unlock = UnlockArguments()
    private(set) var service: String?

    /// Reads `words` as the shell has them, quotes and all. The last of several equal options counts. Variables and
    /// other expansions of the shell are not made.
    init(_ words: [String]) {
        var rest = words.dropFirst().prefix(while: { $0 != "--" })[...]
        while let word = rest.popFirst() {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            if name == "--no-agent" { location.noAgent = true }
            guard let option = Self.options[name] else { continue }
            // bash makes three words of `--service=name`.
            if parts.count == 1, rest.first == "=" { rest.removeFirst() }
            guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else { return }
            self[keyPath: option] = Self.withoutQuotes(value)
        }
    }

    private static let options: [String: any WritableKeyPath<Self, String?> & Sendable] = [
        "--vault": \.location.vault, "--backend": \.location.backend, "--collection": \.location.collection,
        "--state-dir": \.location.stateDirectory, "--key-file": \.unlock.keyFile, "--service": \.service,
    ]

    /// Returns the word that the shell makes of `word`: without quotes and backslashes, and with the home directory
    /// for a `~/` at its beginning.
    static func withoutQuotes(_ word: String) -> String {
        var result = ""
        var quote: Character?
        var isEscaped = false
        for character in word {
            if isEscaped {
                // Between double quotes, a backslash stands for itself before most characters.
                if quote == "\"", !"\"\\$`".contains(character) { result.append("\\") }
                result.append(character)
                isEscaped = false
            } else if character == "\\", quote != "'" {
                isEscaped = true
            } else if character == quote {
                quote = nil
            } else if quote == nil, character == "'" || character == "\"" {
                quote = character
            } else {
                result.append(character)
            }
        }
        guard word.hasPrefix("~/"), let home = ProgramContext.path("HOME") else { return result }
        return home.appending(String(result.dropFirst(2))).string
    }
}
