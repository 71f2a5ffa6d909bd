import ArgumentParser
import TokenVault
import VaultAgent

struct Lock: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lock the vault in the agent, at once.",
        discussion: """
            Items that may be read after the first unlock stay readable until the agent ends. Succeeds when nothing \
            was unlocked.

            Examples:
              vaultctl lock
              vaultctl lock --all
            """)

    @Flag(help: "Lock every vault that the agent holds.") var all = false
    @OptionGroup(title: "Where and how") var location: LocationOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments)
        try session.requireFile()
        try AgentStarter.requirePlace()
        if all {
            let limit = session.timeout ?? AgentControl.timeout
            try calling { () throws(TokenStorageError) in
                try AgentControl.lockAll(at: AgentPlaces.own, within: limit)
            }
            return .done
        }
        let agent = try session.agentClient()
        let wasHeld = try calling { () throws(TokenStorageError) in try agent.lock() }
        if !wasHeld { console.remark("vaultctl: note: the agent does not hold the vault") }
        return .done
    }
}
