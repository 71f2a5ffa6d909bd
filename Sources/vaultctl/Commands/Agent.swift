import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent

struct Agent: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Run the agent in the foreground.",
            description: """
                The agent holds the vaults that "vaultctl unlock" unlocks. "vaultctl unlock" starts an agent by itself. systemd \
                starts an agent with the user unit tokenvault-agent.socket, which "make install" installs.

                SIGTERM and SIGINT end the agent, and SIGHUP locks every vault. The agent also locks every vault with the \
                desktop session and before sleep, where logind reports these. An agent without an open vault and without a client ends after ten minutes.

                With --credential, the agent unlocks the vault at its start. If the unlock fails, the agent does not start. Such an agent does not end by itself, and that vault does not lock after a time without use.

                When the agent accepts clients, the agent writes a byte to the descriptor of --ready-fd and notifies systemd.
                """,
            examples: [
                "vaultctl agent",
                "vaultctl agent --credential tokenvault --vault /srv/example.vault",
                "vaultctl agent --stop",
            ],
            statuses: [
                .done: "The agent has ended.",
                .unavailable:
                    "The agent cannot start: its directory or program is not available, or the credential does not open the vault.",
                .conflict: "Another agent runs already.",
                .timedOut: "With --stop: the agent did not end in time.",
            ],
            standard: .plain))

    @Flag(help: "End the running agent, which then releases every vault.") var stop = false
    @Option(
        name: .customLong("ready-fd"),
        help: ArgumentHelp(
            "Write a byte to this descriptor, 3 or above, when clients can connect.", valueName: "n"))
    var readyDescriptor: String?
    @Option(
        help: ArgumentHelp(
            "Unlock the vault at the start, with the systemd credential of this name.", valueName: "name"))
    var credential: String?
    @OptionGroup(title: "Where and how") var location: LocationOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        try AgentStarter.requirePlace()
        if stop {
            let limit = Deadline(after: try Settings.timeout(location.timeout) ?? AgentControl.timeout)
            var wasRunning = false
            var failure: CommandFailure?
            for place in try AgentStarter.places() {
                do throws(CommandFailure) {
                    let ran = try calling { () throws(TokenStorageError) in
                        try AgentControl.stop(at: place, within: limit.remaining)
                    }
                    if ran { wasRunning = true }
                } catch {
                    failure = failure ?? error
                }
            }
            if let failure { throw failure }
            if !wasRunning { console.note("no agent was found, so none was ended") }
            return .done
        }
        let program = try AgentStarter.program()
        var arguments = ["--directory", AgentEndpoints.own.directory.string]
        if let readyDescriptor {
            let number: Int32 = try Settings.number(readyDescriptor, named: "--ready-fd", 3...1_048_576)
            arguments += ["--ready-fd", String(number)]
        }
        if let credential {
            guard ServiceCredentials.isName(credential) else {
                throw .usage(
                    "no credential can have that name", "give the name from LoadCredential=")
            }
            let session = try Session(console, location.arguments)
            try session.requireFile()
            // The paths must be absolute, because the agent leaves its starting directory.
            let vault = ProgramContext.absolute(try session.vaultPath)
            let state = ProgramContext.absolute(try session.stateDirectory)
            arguments += ["--credential", "\(credential):\(vault)", "--state-dir", state.string]
        }
        do throws(SystemFailure) {
            try ProgramContext.become(program, arguments)
        } catch {
            throw CommandFailure(error, "the agent's program", "check how it is installed")
        }
    }
}
