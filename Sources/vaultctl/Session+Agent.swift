import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent

extension Session {
    /// The vault by way of the agent, if the agent holds it and may be asked. What it says is final then, `locked` too.
    func agentVault() throws(CommandFailure) -> BlockingAgentVault? {
        guard backend == .file, asksAgent else { return nil }
        if let place = AgentPlaces.takenByAnother {
            console.note("no agent is asked, since \(place) is another user's: \(AgentStarter.placeAdvice)")
            return nil
        }
        let vault = try agentClient()
        let facts = try calling { () throws(TokenStorageError) in try vault.heldFacts() }
        return facts == nil ? nil : vault
    }

    /// The vault by way of the agent, whether it is held there or not.
    func agentClient() throws(CommandFailure) -> BlockingAgentVault {
        try requireFile()
        return BlockingAgentVault(
            at: try vaultPath, agent: AgentPlaces.own,
            timeout: console.deadline?.remaining ?? timeout ?? .seconds(30))
    }

    /// Makes the agent let go of the vault, which is gone or another one by now.
    func releaseFromAgent() {
        guard let vault = try? agentClient() else { return }
        _ = try? vault.release()
    }
}
