import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent

extension CommandFailure {
    /// Creates the failure for a library error.
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
        case .agentDirectoryForeign where error.code == .insecurePermissions, .itemsBoundToDevice,
            .missing(.earlierValue):
            // The code's own words are about a file or an item that is not meant here.
            self.happened = error.underlying ?? happened
        default: break
        }
        mayBeDone = error.code == .outcomeUnknown
        cause = error
    }

    /// Returns the failure with a note for users of the environment variable `variable`, which names an
    /// unlock method. The note says that the agent holds the vault and decides whether it is open. Returns
    /// other failures unchanged.
    func told(passingOver variable: String?) -> CommandFailure {
        guard status == .locked, let variable else { return self }
        var told = self
        told.happened =
            cause?.code == .locked ? "locked by the agent, which holds the vault" : "\(happened) by the agent"
        told.happened += "; \(variable) is not used while an agent holds it"
        let option = variable == "VAULTCTL_KEY_FILE" ? "--key-file" : "--passphrase-file"
        told.advice = "run \"vaultctl unlock\", or give \(option) or --no-agent"
        return told
    }

    /// Returns the failure to enter the directory of the vault at `path`.
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
}

/// Runs a library call and converts its error into a `CommandFailure`.
func calling<Result>(
    _ body: () throws(TokenStorageError) -> Result
) throws(CommandFailure) -> Result {
    do { return try body() } catch { throw CommandFailure(error) }
}
