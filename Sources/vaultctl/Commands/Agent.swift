import ArgumentParser
import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent

struct Agent: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the agent in the foreground.",
        discussion: """
            It holds the vaults that \"vaultctl unlock\" unlocks, and ends by SIGTERM or SIGINT; SIGHUP locks every \
            vault. \"vaultctl unlock\" starts one by itself.

            Examples:
              vaultctl agent
              vaultctl agent --stop
            """)

    @Flag(help: "End the agent that runs, and with it what it holds.") var stop = false

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        if stop {
            try calling { () throws(TokenStorageError) in try AgentControl.stop(at: AgentPlaces.own) }
            return .done
        }
        let program = try AgentStarter.program()
        do throws(SystemFailure) {
            try ProgramContext.become(program, ["--directory", AgentPlaces.own.directory.string])
        } catch {
            throw CommandFailure(error, "the agent's program", "check how it is installed")
        }
    }
}
