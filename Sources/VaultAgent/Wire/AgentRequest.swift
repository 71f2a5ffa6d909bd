package import TokenVault

/// The vault that a request is about.
package struct VaultReference: Hashable, Sendable {
    /// The absolute path of the vault's file, without links in its parent directories.
    package var path: FilePath
    /// The vault's identifier; `nil` for any vault at the path.
    package var identifier: String?

    package init(path: FilePath, identifier: String? = nil) {
        self.path = path
        self.identifier = identifier
    }
}

/// A request of a client to the agent.
package struct AgentRequest: Sendable {
    /// The request's number, chosen by the client; the answer has the same number.
    package var id: UInt32
    package var vault: VaultReference
    package var operation: AgentOperation

    package init(id: UInt32, vault: VaultReference, operation: AgentOperation) {
        self.id = id
        self.vault = vault
        self.operation = operation
    }
}

/// An operation of the agent.
package enum AgentOperation: Sendable {
    case secret(service: String, key: TokenKey)
    case item(service: String, key: TokenKey)
    case metadata(service: String, key: TokenKey)
    /// `nil` for every service.
    case list(service: String?, query: TokenQuery)
    case commit(service: String, changes: [TokenChange])
    /// Changes that belong to the following commit with the same number.
    case commitPart(service: String, changes: [TokenChange])
    case deleteAll(service: String)
    case history(service: String, key: TokenKey)
    /// `nil` for the value before the present one.
    case undo(service: String, key: TokenKey, to: Generation?)
    case state
    case status
    case unlock(UnlockOrder)
    case lock
    /// Makes the agent release the vault.
    case close
    /// Reports the changes of the service from now on, as events with the request's number.
    case subscribe(service: String)

    // These requests concern no vault, so their path is empty.
    case vaults
    case lockAll
    /// Ends the agent.
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

/// The settings for unlocking a vault in the agent.
package struct UnlockOrder: Sendable {
    package var method: UnlockMethod
    /// The directory of this device's keys.
    package var stateDirectory: FilePath?
    /// The time without use after which the vault locks; `nil` for never.
    package var idleTime: Duration?
    /// Whether the caller chose that time. Otherwise an unlocked vault keeps its own.
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
