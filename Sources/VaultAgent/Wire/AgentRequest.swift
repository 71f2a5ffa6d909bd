package import TokenVault

/// Which vault a request is about.
package struct VaultReference: Hashable, Sendable {
    /// The path of its file from the root, without links in what leads there.
    package var path: FilePath
    /// Its identifier; `nil` for whatever vault is there.
    package var identifier: String?

    package init(path: FilePath, identifier: String? = nil) {
        self.path = path
        self.identifier = identifier
    }
}

/// What a client asks of the agent.
package struct AgentRequest: Sendable {
    /// Chosen by the client; the answer has the same.
    package var id: UInt32
    package var vault: VaultReference
    package var operation: AgentOperation

    package init(id: UInt32, vault: VaultReference, operation: AgentOperation) {
        self.id = id
        self.vault = vault
        self.operation = operation
    }
}

/// What is to be done with a vault.
package enum AgentOperation: Sendable {
    case secret(service: String, key: TokenKey)
    case item(service: String, key: TokenKey)
    case metadata(service: String, key: TokenKey)
    /// `nil` for every service.
    case list(service: String?, query: TokenQuery)
    case commit(service: String, changes: [TokenChange])
    /// Changes of the commit with the same number that follows.
    case commitPart(service: String, changes: [TokenChange])
    case deleteAll(service: String)
    case history(service: String, key: TokenKey)
    /// `nil` for the value before the present one.
    case undo(service: String, key: TokenKey, to: Generation?)
    case state
    case status
    case unlock(UnlockOrder)
    case lock
    /// Lets go of the vault: the agent holds it no longer.
    case close
    /// From now on changes of the service are told, as events with the request's number.
    case subscribe(service: String)

    // These are about no vault: its path is empty.
    case vaults
    case lockAll
    /// The agent ends.
    case stop

    package var kind: AgentWire.Kind {
        switch self {
        case .secret: .secret
        case .item: .item
        case .metadata: .metadata
        case .list: .list
        case .commit: .commit
        case .commitPart: .commitPart
        case .deleteAll: .deleteAll
        case .history: .history
        case .undo: .undo
        case .state: .state
        case .status: .status
        case .unlock: .unlock
        case .lock: .lock
        case .close: .close
        case .subscribe: .subscribe
        case .vaults: .vaults
        case .lockAll: .lockAll
        case .stop: .stop
        }
    }
}

/// How the agent is to unlock a vault.
package struct UnlockOrder: Sendable {
    package var method: UnlockMethod
    /// Where this device's keys are.
    package var stateDirectory: FilePath?
    /// The vault locks itself when it was not used for so long; `nil` for never.
    package var idleTime: Duration?
    /// Whether somebody asked for that time: a vault that is unlocked keeps the one that it has otherwise.
    package var isTimeAsked: Bool

    package init(
        method: UnlockMethod, stateDirectory: FilePath?, idleTime: Duration?, isTimeAsked: Bool = true
    ) {
        self.isTimeAsked = isTimeAsked
        self.method = method
        self.stateDirectory = stateDirectory
        self.idleTime = idleTime
    }
}
