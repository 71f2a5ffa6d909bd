import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent

extension Session {
    /// Returns the vault through the agent, if the agent holds the vault and may be asked. The agent's answer
    /// is final then, including `locked`.
    func agentVault() throws(CommandFailure) -> BlockingAgentVault? {
        guard let vault = try agentToAsk() else { return nil }
        guard try calling({ () throws(TokenStorageError) in try vault.heldFacts() }) != nil else {
            return nil
        }
        console.variablePassedOver = unlockVariable
        return vault
    }

    /// Returns the value of `key`; `nil` when the key does not exist. The agent's answer is final if the
    /// agent holds the vault and may be asked.
    ///
    /// One request fetches the value and checks whether the vault is held, because scripts call `retrieve` in
    /// loops.
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

    /// Returns the vault through the agent, if the agent may be asked, whether or not the agent holds the
    /// vault.
    func agentToAsk() throws(CommandFailure) -> BlockingAgentVault? {
        guard backend == .file, asksAgent else { return nil }
        if let place = AgentEndpoints.ownedByAnotherUser {
            console.note(
                "the agent is not used, because \(place) belongs to another user: \(AgentStarter.placeAdvice)"
            )
            return nil
        }
        console.asksAgent = true
        return try agentClient()
    }

    /// Returns the vault through the agent at `place`, whether or not the agent holds the vault.
    func agentClient(at place: AgentEndpoint = AgentEndpoints.own) throws(CommandFailure)
        -> BlockingAgentVault
    {
        try requireFile()
        let left = console.deadline?.remaining ?? timeout
        return BlockingAgentVault(
            at: try vaultPath, agent: place, timeout: left ?? .seconds(30),
            unlockTimeout: left ?? .seconds(120))
    }

    /// Makes the agent release the vault, which was removed or replaced. Does nothing when the agent must not
    /// be contacted.
    @discardableResult
    func releaseFromAgent() -> Bool {
        guard mayTellAgent, AgentEndpoints.ownedByAnotherUser == nil else { return false }
        return ((try? AgentEndpoints.everywhere()) ?? AgentEndpoints.all).map {
            (try? agentClient(at: $0).release()) ?? false
        }.contains(true)
    }
}
