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
            Self.advice(for: error) ?? error.advice ?? Self.advice(for: error.code) ?? error.code.nextStep)
        if error.underlying == AgentPlace.closedDirectory {
            self.happened = "the agent's directory \(AgentPlaces.own.directory) cannot be used"
            advice = AgentStarter.closedAdvice
        } else if error.code == .insecurePermissions, error.backend == AgentPlace.backend,
            let reason = error.underlying
        {
            // It is about no file, and says all by itself.
            self.happened = reason
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

    /// Advice in terms of this program, where the library's is for programs.
    private static func advice(for error: TokenStorageError) -> String? {
        switch (error.code, error.underlying) {
        case (.readOnly, WritingObstacle.reasonWhenAsked): "leave --read-only out"
        case (.wrongDevice, let reason?) where reason.hasPrefix("no device key at"):
            "the state directory may not be the one it was stored with: check HOME, XDG_STATE_HOME, --state-dir; if it "
                + "is, \(foreign)"
        case (.unavailable, _)
        where ["create the vault first", "create it first"].contains {
            error.advice?.hasPrefix($0) == true
        }:
            "\"vaultctl init\" creates the vault; else check --vault and HOME"
        // Advice for programs, which says less.
        case (.notPermitted, _) where error.advice?.hasPrefix("unlock with a passphrase") == true:
            advice(for: .notPermitted)
        default: nil
        }
    }

    /// What there is to do about an item that another device stored.
    private static let foreign =
        "read it on the device that stored it; here, use another key, or \"vaultctl device remove\" that device, "
        + "with all that only it may read"

    /// Advice in terms of this program, where it has any that is better than the library's.
    private static func advice(for code: TokenStorageError.Code) -> String? {
        switch code.kind {
        case .locked: "\"vaultctl unlock\" it, or give --passphrase-file or --key-file"
        case .wrongDevice: foreign
        case .notPermitted:
            "\"vaultctl unlock --passphrase-file …\", or with another slot that leads to it; an item that a key file alone is to read takes "
                + "\"vaultctl set KEY --policy after-first-unlock-this-device-only\""
        case .notFound:
            "\"vaultctl list\" shows the keys of this service, which is the one of --service, else VAULTCTL_SERVICE, else "
                + "\"default\"; with --all-services those of every one"
        case .slotNotFound: "\"vaultctl slot list\" shows their numbers"
        case .lastSlot: "add another one first, with \"vaultctl slot add\""
        case .tooManySlots: "remove one first, with \"vaultctl slot remove\""
        case .conflict: "\"vaultctl info\" shows the generation it has now"
        case .corrupt:
            "\"vaultctl verify\" says where, \"vaultctl salvage\" copies out what is whole, \"vaultctl restore\" puts "
                + "a backup in its place"
        case .rolledBack:
            "put the newest copy back; if this is the one to go on with, \"vaultctl restore\" it, on purpose"
        case .forked:
            "\"vaultctl merge COPY\" takes what a copy has into the vault; \"vaultctl adopt\" makes this file the vault as "
                + "it is"
        case .unexpectedVault:
            "put the expected vault back; \"vaultctl adopt\" takes this one, \"vaultctl destroy --forget\" forgets the other"
        case .duplicateVault:
            "use the other, or make this one the vault with \"vaultctl adopt\"; \"vaultctl export\" reads what may leave "
                + "the device from either"
        case .unavailable: "create a vault with \"vaultctl init\", or check --vault"
        case .notAVault: "check --vault; a backup is put there with \"vaultctl restore\""
        case .insecurePermissions: "make it yours, with mode 0600 (chmod 600)"
        case .invalidArgument: "see \"vaultctl help\" for what the options take"
        case .outcomeUnknown: "compare it with the generation that \"vaultctl info\" shows"
        case .timedOut: "try again, with a longer --timeout if need be"
        case .unsupportedPolicy: "choose another --policy"
        default: nil
        }
    }
}

/// Runs a call of the library and turns its error into ours.
func calling<Result>(
    _ body: () throws(TokenStorageError) -> Result
) throws(CommandFailure) -> Result {
    do { return try body() } catch { throw CommandFailure(error) }
}
