import ArgumentParser
import ProgramSupport
import TokenVault
import TokenVaultPlatform
import VaultAgent

struct Lock: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Lock the vault in the agent, at once.",
            description: """
                Items of the after-first-unlock policies stay readable until the agent ends. A vault without such items is \
                closed, so that its file system can be unmounted. If no agent holds the vault, the command succeeds and says so.

                The command looks for agents in XDG_RUNTIME_DIR, in /run/user/UID with the directories of snaps in it, and in \
                /tmp. If XDG_RUNTIME_DIR is not below /run/user, the command looks only in XDG_RUNTIME_DIR.
                """,
            examples: [
                "vaultctl lock",
                "vaultctl lock --all",
            ],
            statuses: [
                .unavailable:
                    "The agent cannot be reached, or no vault is at the path while another vault is unlocked."
            ],
            standard: .waiting))

    @Flag(help: "Lock every vault that the agent holds.") var all = false
    @OptionGroup(title: "Where and how") var location: LocationOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments)
        try session.requireFile()
        guard !location.noAgent else {
            throw .usage("only the agent can lock, and --no-agent bypasses it", "leave --no-agent out")
        }
        try AgentStarter.requirePlace()
        var wasHeld = false
        var failure: CommandFailure?
        // Every place where an agent may run counts, because each agent with keys must release them.
        let places = try AgentStarter.places()
        for place in places {
            do throws(CommandFailure) {
                if try lock(at: place, session) { wasHeld = true }
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
        if !wasHeld {
            if !all { try requireVault(session) }
            var isRunning = false
            for place in places where !isRunning {
                isRunning = try calling { () throws(TokenStorageError) in
                    try AgentControl.isRunning(at: place)
                }
            }
            console.note(
                isRunning
                    ? "the agent does not hold the vault, so nothing was locked"
                    : "no agent was found, so nothing was locked")
        }
        return .done
    }

    /// Locks the vault, or all vaults, in the agent at `place`, if an agent runs there. Returns whether the
    /// agent holds the vault, or with `all` whether an agent runs.
    private func lock(at place: AgentEndpoint, _ session: Session) throws(CommandFailure) -> Bool {
        guard all else {
            let agent = try session.agentClient(at: place)
            return try calling { () throws(TokenStorageError) in try agent.lock() }
        }
        let limit = session.console.deadline?.remaining ?? AgentControl.timeout
        return try calling { () throws(TokenStorageError) in
            try AgentControl.lockAll(at: place, within: limit)
        }
    }

    /// Throws `unavailable` when the path has no recognizable vault while another vault is open. The path was
    /// probably mistyped, and the user would believe that the vault is locked.
    private func requireVault(_ session: Session) throws(CommandFailure) {
        let path = try session.vaultPath
        let there = try? BlockingFileVault.open(
            at: path, configuration: FileVaultConfiguration(stateDirectory: nil))
        guard there == nil else { return }
        for place in try AgentStarter.places() {
            let vaults = try calling { () throws(TokenStorageError) in try AgentControl.vaults(at: place) }
            guard vaults.allSatisfy({ $0.state == .locked }) else {
                throw CommandFailure(
                    .unavailable, "no vault is at \(path), but another one is open",
                    "check the path, or lock every vault with \"vaultctl lock --all\"")
            }
        }
    }
}
