import ArgumentParser
import SystemPackage
import TokenVaultPlatform
import VaultAgent

struct Agent: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the agent in the foreground.",
        discussion: """
            It holds the vaults that \"vaultctl unlock\" unlocks, and ends by SIGTERM or SIGINT; SIGHUP locks every \
            vault. \"vaultctl unlock\" starts one by itself.

            Example:
              vaultctl agent
            """)

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let program = try AgentStarter.program()
        do throws(SystemFailure) {
            try ProgramContext.become(program, ["--directory", AgentPlaces.own.directory.string])
        } catch {
            throw CommandFailure(error, "the agent's program", "check how it is installed")
        }
    }
}
