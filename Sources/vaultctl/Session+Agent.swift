import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent

extension Session {
    /// The vault by way of the agent, if the agent holds it and may be asked. What it says is final then, `locked` too.
    func agentVault() throws(CommandFailure) -> BlockingAgentVault? {
        guard let vault = try agentToAsk() else { return nil }
        guard try calling({ () throws(TokenStorageError) in try vault.heldFacts() }) != nil else {
            return nil
        }
        console.variablePassedOver = unlockVariable
        return vault
    }

    /// The value of `key`, of the agent if it holds the vault and may be asked: what that says is final then. Asked at once, and
    /// not after whether the vault is held: scripts call `retrieve` in loops. `nil` when there is no such key.
    func secret(for key: TokenKey, service: String) throws(CommandFailure) -> Secret? {
        if let agent = try agentToAsk() {
            console.variablePassedOver = unlockVariable
            let answer = try calling { () throws(TokenStorageError) in
                try agent.storage(service: service).secretIfHeld(for: key)
            }
            if case .held(let secret) = answer { return secret }
            console.variablePassedOver = nil
        }
        let storage = try ownStorage(service: service, orOthers: true)
        return try calling { () throws(TokenStorageError) in try storage.secret(for: key) }
    }

    /// The vault by way of the agent, if that may be asked, whether it is held there or not.
    func agentToAsk() throws(CommandFailure) -> BlockingAgentVault? {
        guard backend == .file, asksAgent else { return nil }
        if let place = AgentEndpoints.ownedByAnotherUser {
            console.note("no agent is asked, since \(place) is another user's: \(AgentStarter.placeAdvice)")
            return nil
        }
        console.asksAgent = true
        return try agentClient()
    }

    /// The vault by way of the agent at `place`, whether it is held there or not.
    func agentClient(at place: AgentEndpoint = AgentEndpoints.own) throws(CommandFailure)
        -> BlockingAgentVault
    {
        try requireFile()
        let left = console.deadline?.remaining ?? timeout
        return BlockingAgentVault(
            at: try vaultPath, agent: place, timeout: left ?? .seconds(30),
            unlockTimeout: left ?? .seconds(120))
    }

    /// Makes the agent let go of the vault, which is gone or another one by now, unless it is not to be talked to.
    @discardableResult
    func releaseFromAgent() -> Bool {
        guard mayTellAgent, AgentEndpoints.ownedByAnotherUser == nil else { return false }
        return ((try? AgentEndpoints.everywhere()) ?? AgentEndpoints.all).map {
            (try? agentClient(at: $0).release()) ?? false
        }.contains(true)
    }
}
