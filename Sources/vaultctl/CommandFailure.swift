import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent

/// Why a command ends without having done its work: the status and the one line on standard error.
///
/// The line says what happened and what to do. It never repeats an argument's value: a secret typed in
/// the wrong place must not end up in a log.
struct CommandFailure: Error, Equatable {
    var status: ExitStatus
    var happened: String
    var advice: String
    /// Whether what was asked for may have been done all the same.
    var mayBeDone = false
    /// The library's error that it tells of; `nil` for another reason.
    var cause: TokenStorageError?

    init(_ status: ExitStatus, _ happened: String, _ advice: String) {
        self.status = status
        self.happened = happened
        self.advice = advice
    }

    /// A mistake on the command line.
    static func usage(_ happened: String, _ advice: String) -> CommandFailure {
        CommandFailure(.usage, happened, advice)
    }

    /// What an error of the library means at the command line.
    init(_ error: TokenStorageError) {
        let underlying = error.underlying.map { " (\($0))" } ?? ""
        var happened = error.code.summary + underlying
        if error.code == .outcomeUnknown, let generation = error.generation {
            happened += ", generation \(generation)"
        }
        self.init(
            ExitStatus(error.code), happened,
            Self.advice(for: error.reason) ?? error.advice ?? Self.advice(for: error.code)
                ?? error.code.nextStep)
        switch error.reason {
        case .agentDirectoryClosed:
            self.happened = "the agent's directory \(AgentEndpoints.own.directory) cannot be used"
        case .agentDirectoryForeign where error.code == .insecurePermissions:
            // It is about no file, and says all by itself.
            self.happened = error.underlying ?? happened
        default: break
        }
        mayBeDone = error.code == .outcomeUnknown
        cause = error
    }

    /// The failure with what a person cannot know who set `variable` to open the vault: that the agent holds it, and says
    /// when it is open. `nil` when that is not so.
    func told(passingOver variable: String?) -> CommandFailure {
        guard status == .locked, let variable else { return self }
        var told = self
        told.happened =
            cause?.code == .locked ? "locked by the agent, which holds the vault" : "\(happened) by the agent"
        told.happened += "; \(variable) is not used while an agent holds it"
        let option = variable == "VAULTCTL_KEY_FILE" ? "--key-file" : "--passphrase-file"
        told.advice = "\"vaultctl unlock\" it, or give \(option) or --no-agent"
        return told
    }

    /// What a failed system call means, having been about `subject`.
    init(_ failure: SystemFailure, _ subject: String, _ advice: String) {
        if failure.errno == .timedOut {
            self.init(.timedOut, "timed out waiting for \(subject)", "try again with a longer --timeout")
        } else {
            self.init(.failure, "\(subject): \(failure.errno.description)", advice)
        }
    }

    /// What keeps the directory of the vault at `path` from being looked into.
    static func closedDirectory(of path: FilePath, _ failure: SystemFailure) -> CommandFailure {
        let directory = ProgramContext.absolute(path).parent
        var advice = "check --vault, XDG_DATA_HOME and HOME"
        if failure.errno == .permissionDenied,
            let (place, owner) = FileAttributes.nearestDirectory(to: directory), owner != ProcessFacts.user
        {
            advice = "\(place) belongs to \(ProcessFacts.name(ofUser: owner)); \(advice)"
        }
        return CommandFailure(failure, "the vault's directory \(directory)", advice)
    }

    /// What kept standard output from taking what was written to it.
    static func output(_ failure: SystemFailure) -> CommandFailure {
        CommandFailure(failure, "standard output", "check where it goes to")
    }

    /// The line, without control characters: advice can name paths.
    var line: String { Self.printable("vaultctl: \(happened): \(advice)") }

    /// `text` with a question mark for each character that a terminal obeys or does not show: control characters, those
    /// that turn the direction of the text around them, zero-width characters and tags.
    static func printable(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { isObeyedOrHidden($0) ? "?" : $0 }))
    }

    private static func isObeyedOrHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default:
            // How emoji are drawn; and a blank that is a symbol by its category.
            scalar.value == 0x2800
                || scalar.properties.isDefaultIgnorableCodePoint && !(0xfe0e...0xfe0f).contains(scalar.value)
        }
    }
}

/// Runs a call of the library and turns its error into ours.
func calling<Result>(
    _ body: () throws(TokenStorageError) -> Result
) throws(CommandFailure) -> Result {
    do { return try body() } catch { throw CommandFailure(error) }
}
