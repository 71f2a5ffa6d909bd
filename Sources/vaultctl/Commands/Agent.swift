import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent

struct Agent: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the agent in the foreground.",
        discussion: """
            It holds the vaults that \"vaultctl unlock\" unlocks, and ends by SIGTERM or SIGINT; SIGHUP locks every \
            vault. Without --credential it also ends after ten minutes with no open vault and no client. \
            \"vaultctl unlock\" starts one by itself. When it takes clients it writes a byte to the descriptor of --ready-fd, \
            and notifies systemd, whose units \"make install\" installs.

            Examples:
              vaultctl agent
              vaultctl agent --credential tokenvault --vault /srv/example.vault
              vaultctl agent --stop
            """)

    @Flag(help: "End the agent that runs, and with it what it holds.") var stop = false
    @Option(
        name: .customLong("ready-fd"),
        help: ArgumentHelp(
            "Write a byte to this descriptor, 3 or above, when clients can come.", valueName: "n"))
    var readyDescriptor: String?
    @Option(
        help: ArgumentHelp(
            "Unlock the vault at once, with the systemd credential of that name.", valueName: "name"))
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
