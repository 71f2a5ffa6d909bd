import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

/// The source of the passphrase or key.
enum UnlockSource {
    case keyFile(FilePath)
    case passphraseFile(FilePath)
    case passphraseInput(InputSource)
    /// The terminal, if there is one.
    case terminal

    /// Creates the source from the options, else from the environment. Secures a descriptor before an opened
    /// file could get its number.
    init(_ arguments: UnlockArguments) throws(CommandFailure) {
        let keyFile = try Settings.path(arguments.keyFile, named: "--key-file", environment: nil)
        let file = try Settings.path(
            arguments.passphraseFile, named: "--passphrase-file", environment: nil)
        let given = [arguments.keyFile, arguments.passphraseFile, arguments.passphraseDescriptor]
        guard given.count(where: { $0 != nil }) <= 1 else {
            throw .usage(
                "more than one unlock method was given",
                "give one of --passphrase-file, --passphrase-fd and --key-file")
        }
        if let keyFile {
            self = .keyFile(keyFile)
        } else if let file {
            self = .passphraseFile(file)
        } else if let descriptor = arguments.passphraseDescriptor {
            let number: Int32 = try Settings.number(
                descriptor, named: "--passphrase-fd", 0...1_048_576)
            do throws(SystemFailure) {
                self = .passphraseInput(number == 0 ? .standard : try .inherited(number))
            } catch {
                throw CommandFailure(
                    error, "the passphrase descriptor", "check the descriptor that the caller passes")
            }
        } else if let keyFile = try Settings.path(
            nil, named: "--key-file", environment: "VAULTCTL_KEY_FILE")
        {
            self = .keyFile(keyFile)
        } else if let file = try Settings.path(
            nil, named: "--passphrase-file", environment: "VAULTCTL_PASSPHRASE_FILE")
        {
            self = .passphraseFile(file)
        } else {
            self = .terminal
        }
    }

    /// Whether no source was given, so that the user must be asked.
    var isTerminal: Bool { if case .terminal = self { true } else { false } }

    /// The environment variable that names the source when no option does.
    var variable: String? {
        switch self {
        case .keyFile: "VAULTCTL_KEY_FILE"
        case .passphraseFile: "VAULTCTL_PASSPHRASE_FILE"
        case .passphraseInput, .terminal: nil
        }
    }

    /// Throws `locked` when no source was given and no prompt is possible, or when no passphrase opens the
    /// vault. `advice` names the options to give.
    func requireSomebody(
        _ console: Console, opening slots: [VaultSlot],
        _ advice: String = "give --passphrase-file, --passphrase-fd 0 or --key-file"
    ) throws(CommandFailure) {
        guard isTerminal else { return }
        if let unattended = UnattendedVault(slots) { throw unattended.locked }
        guard !console.canAskForSecrets else { return }
        throw CommandFailure(.locked, "no terminal to prompt on", advice)
    }

    /// Reads or asks for the unlock method. Also returns the line of a passphrase file. Throws `locked` when
    /// nothing was given and no prompt is possible.
    private func unlockMethod(
        _ console: Console
    ) throws(CommandFailure) -> (method: UnlockMethod, line: PassphraseLine?) {
        if case .keyFile(let path) = self { return (.keyFile(try KeyFile.read(path, console)), nil) }
        let line = try readPassphrase(console)
        var given = line?.passphrase
        if given == nil { given = try console.askHidden("Passphrase: ") }
        guard let passphrase = given else { throw .locked(asksAgent: console.asksAgent) }
        guard !passphrase.isEmpty else {
            throw CommandFailure(
                .refused, "the passphrase is empty, which opens no vault",
                "its first line must be the passphrase")
        }
        return (.passphrase(passphrase), line)
    }

    /// Gives `body` an unlock method for the vault with `slots`. At a terminal, asks up to three times for a
    /// passphrase. Does not ask when no passphrase opens the vault.
    func withUnlockMethod<Result>(
        _ console: Console, opening slots: [VaultSlot],
        _ body: (UnlockMethod) throws(CommandFailure) -> Result
    ) throws(CommandFailure) -> Result {
        let unattended = UnattendedVault(slots)
        if isTerminal, let unattended { throw unattended.locked }
        var tries = isTerminal && console.asksAtTerminal ? 3 : 1
        while true {
            let (method, line) = try unlockMethod(console)
            do throws(CommandFailure) {
                let result = if let line { try line.open(body) } else { try body(method) }
                console.endSilence()
                return result
            } catch {
                tries -= 1
                guard tries > 0, error.cause?.code == .wrongPassphrase else {
                    console.endSilence()
                    if case .passphrase = method, let unattended { throw unattended.telling(error) }
                    throw error
                }
                console.say(CommandFailure.printable("Sorry, \(error.happened). Try again."))
            }
        }
    }

    /// Gives `body` the unlock method for a new vault. Creates a missing key file, and removes it when `body`
    /// throws. Throws `locked` when nothing was given and no prompt is possible.
    func withNewUnlockMethod<Result>(
        _ console: Console, _ body: (UnlockMethod) throws(CommandFailure) -> Result
    ) throws(CommandFailure) -> Result {
        switch self {
        case .keyFile(let path):
            return try KeyFile.making(path, console) { (contents) throws(CommandFailure) in
                try body(.keyFile(contents))
            }
        case .passphraseFile, .passphraseInput:
            guard let passphrase = try readNewPassphrase(console) else { break }
            return try body(.passphrase(passphrase))
        case .terminal:
            if let passphrase = try console.askNewPassphrase("New passphrase") {
                return try body(.passphrase(passphrase))
            }
        }
        throw CommandFailure(
            .locked, "no unlock method for the new vault, and no terminal to prompt on",
            "give --passphrase-file, --passphrase-fd or --key-file")
    }

    /// Returns the new passphrase from a file or descriptor; `nil` without one.
    func readNewPassphrase(_ console: Console) throws(CommandFailure) -> Secret? {
        guard let passphrase = try readPassphrase(console)?.passphrase else { return nil }
        guard !passphrase.isEmpty else { throw .emptyPassphrase }
        return passphrase
    }

    /// Returns the first line of the passphrase file or descriptor.
    private func readPassphrase(_ console: Console) throws(CommandFailure) -> PassphraseLine? {
        switch self {
        case .passphraseFile(let path): try PassphraseLine(path, console)
        case .passphraseInput(let input): try PassphraseLine(input, console)
        case .keyFile, .terminal: nil
        }
    }

    /// Returns the first line of the file or pipe at `path`.
    static func readPassphraseFile(_ path: FilePath, _ console: Console) throws(CommandFailure) -> Secret {
        try PassphraseLine(path, console).passphrase
    }
}

extension CommandFailure {
    /// Returns the failure without an unlock method. Only a command that asks the agent can use a vault that
    /// the agent has open.
    static func locked(asksAgent: Bool) -> CommandFailure {
        guard !asksAgent else {
            return CommandFailure(TokenStorageError(.locked, operation: "unlock", backend: "vaultctl"))
        }
        return CommandFailure(
            .locked, "locked, and this command opens the file itself, without the agent",
            "give --passphrase-file, --passphrase-fd or --key-file")
    }

    static let emptyPassphrase = CommandFailure(
        .usage, "the new passphrase is empty", "its first line must be the passphrase")
}
