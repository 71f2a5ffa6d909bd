internal import Synchronization
public import SystemPackage
public import TokenVault
internal import TokenVaultPlatform

/// A vault that the agent holds, for blocking code: every call asks the agent and waits for its answer, up to
/// a time limit.
///
/// The agent returns items and never a key. Its answers are those of the vault itself: `locked` is final, and
/// no reason to open the vault's file. Concurrent threads use separate connections.
public final class BlockingAgentVault: Sendable {
    /// The path of the vault's file.
    public let path: FilePath
    /// The place where the agent listens.
    public let place: AgentEndpoint
    let reference: VaultReference
    /// The longest wait of a call for the agent.
    let timeout: Duration

    private struct State {
        var connections: [AgentConnection] = []
        var feeds: [ObjectIdentifier: ChangeFeed] = [:]
        var isClosed = false
        var facts: VaultInfo?
    }

    private let state = Mutex(State())
    private let process = ProcessFacts.identifier
    /// The number of connections that are kept for the next call.
    private static let keptConnections = 8
    /// The longest wait for deriving a key, including other derivations before it.
    private let unlockTimeout: Duration

    /// Creates the vault at `path`, by way of the agent at `place`, without asking the agent yet. A call
    /// waits for `timeout` at most.
    public convenience init(at path: FilePath, agent place: AgentEndpoint, timeout: Duration = .seconds(30)) {
        self.init(at: path, agent: place, timeout: timeout, unlockTimeout: .seconds(120))
    }

    /// Creates the same with a separate time limit for unlocking.
    package init(at path: FilePath, agent place: AgentEndpoint, timeout: Duration, unlockTimeout: Duration) {
        self.path = path
        self.place = place
        self.timeout = timeout
        self.unlockTimeout = unlockTimeout
        reference = VaultReference(at: path)
    }

    deinit { for feed in state.withLock({ $0.feeds.values.map { $0 } }) { feed.stop() } }

    // MARK: - Locking

    /// Returns whether the agent holds the vault: it was unlocked there since the agent started. Returns
    /// false when no agent runs. Throws `insecurePermissions` when another user listens in the agent's place,
    /// and `timedOut`.
    public func isHeld() throws(TokenStorageError) -> Bool { try heldFacts() != nil }

    /// Returns the agent's information about the vault; `nil` when the agent does not hold it or no agent
    /// runs.
    package func heldFacts() throws(TokenStorageError) -> VaultInfo? {
        do throws(AgentConnection.Failure) {
            return try ask(.state) { (reader, _) throws(WireError) in try reader.facts() }
        } catch {
            switch error {
            case .notHeld: return nil
            case .absent: return nil
            default: throw error.error("status", isWrite: false)
            }
        }
    }

    /// Unlocks the vault in the agent, which then holds it. `stateDirectory` has this device's keys: see
    /// `FileVaultConfiguration.stateDirectory`. The vault locks after `idleTime` without use;
    /// `nil` for never. An unlocked vault takes on the new time. The passphrase or key is sent to the agent
    /// once and wiped there.
    ///
    /// A key that unlocks less than the vault's present state, such as one with the scope
    /// `VaultSlot.Scope.afterFirstUnlock`, is checked but changes nothing. The time does not
    /// change either.
    ///
    /// Throws the same errors as `BlockingFileVault.unlock(with:repairing:)`, `unavailable` when
    /// no agent runs, and `resourcesExhausted` when the agent holds its maximum of vaults.
    public func unlock(
        with method: UnlockMethod, stateDirectory: FilePath?, lockingAfter idleTime: Duration?
    ) throws(TokenStorageError) {
        try unlock(with: method, stateDirectory, idleTime, isTimeAsked: true)
    }

    /// Unlocks the vault in the agent with the default idle time of 15 minutes. A vault that is already
    /// unlocked keeps its idle time.
    public func unlock(
        with method: UnlockMethod, stateDirectory: FilePath?
    ) throws(TokenStorageError) {
        try unlock(with: method, stateDirectory, .seconds(900), isTimeAsked: false)
    }

    private func unlock(
        with method: UnlockMethod, _ stateDirectory: FilePath?, _ idleTime: Duration?, isTimeAsked: Bool
    ) throws(TokenStorageError) {
        let order = UnlockOrder(
            method: method, stateDirectory: stateDirectory.map { VaultReference(at: $0).path },
            idleTime: idleTime, isTimeAsked: isTimeAsked)
        let facts = try perform(.unlock(order), "unlock", isWrite: false, within: unlockTimeout) {
            (reader, _) throws(WireError) in try reader.facts()
        }
        state.withLock { $0.facts = facts }
    }

    /// Locks the vault in the agent at once. The file at ``path`` identifies the vault, so that it is also
    /// locked if the agent holds it under another path. Returns false when the agent does not hold it, or no
    /// agent runs.
    @discardableResult
    public func lock() throws(TokenStorageError) -> Bool {
        var wasHeld = try tell(.lock, "lock")
        // A directory that became a link since leads elsewhere than when the vault was unlocked.
        let given = VaultReference(path: ProgramContext.absolute(path).lexicallyNormalized())
        if given.path != reference.path { wasHeld = try tell(.lock, "lock", of: given) || wasHeld }
        // Only now, since reading the file may take as long as the file system needs.
        guard let identifier = BlockingFileVault.identifier(ofFileAt: path) else { return wasHeld }
        let known = VaultReference(path: reference.path, identifier: identifier)
        return try tell(.lock, "lock", of: known) || wasHeld
    }

    /// Makes the agent release the vault: all of its keys are wiped, including those of after-first-unlock
    /// items. Returns false when the agent does not hold it, or no agent runs.
    @discardableResult
    public func release() throws(TokenStorageError) -> Bool { try tell(.close, "lock") }

    private func tell(
        _ operation: AgentOperation, _ name: String, of vault: VaultReference? = nil
    ) throws(TokenStorageError) -> Bool {
        do throws(AgentConnection.Failure) {
            try ask(operation, of: vault) { (_, _) throws(WireError) in }
            return true
        } catch {
            switch error {
            case .notHeld: return false
            case .absent: return false
            default: throw error.error(name, isWrite: false)
            }
        }
    }

    /// Returns the lock state; also `locked` when the agent does not hold the vault. Throws `unavailable`
    /// when no agent runs, and `closed`.
    public func lockState() throws(TokenStorageError) -> LockState { try facts()?.state ?? .locked }

    /// Returns the agent's status of the vault; `nil` when the agent does not hold it. Throws `unavailable`
    /// when no agent runs.
    public func status() throws(TokenStorageError) -> AgentVaultStatus? {
        do throws(AgentConnection.Failure) {
            return try ask(.status) { (reader, _) throws(WireError) in try reader.status() }
        } catch {
            if case .notHeld = error { return nil }
            throw error.error("status", isWrite: false)
        }
    }

    /// Returns the same status; also `nil` when no agent runs.
    package func heldStatus() throws(TokenStorageError) -> AgentVaultStatus? {
        do throws(AgentConnection.Failure) {
            return try ask(.status) { (reader, _) throws(WireError) in try reader.status() }
        } catch {
            switch error {
            case .notHeld: return nil
            case .absent: return nil
            default: throw error.error("status", isWrite: false)
            }
        }
    }

    /// Returns the agent's present information about the vault; `nil` when the agent does not hold it.
    private func facts() throws(TokenStorageError) -> VaultInfo? {
        do throws(AgentConnection.Failure) {
            let facts = try ask(.state) { (reader, _) throws(WireError) in try reader.facts() }
            state.withLock { $0.facts = facts }
            return facts
        } catch {
            if case .notHeld = error { return nil }
            throw error.error("status", isWrite: false)
        }
    }

    /// Returns the agent's present information about the vault. If the agent does not hold the vault, throws
    /// the same error as any other call.
    func requiredFacts() throws(TokenStorageError) -> VaultInfo {
        guard let facts = try facts() else {
            throw AgentConnection.Failure.notHeld.error("status", isWrite: false)
        }
        return facts
    }

    /// The present information, or the last known information when the agent is not available.
    var knownFacts: VaultInfo? { (try? facts()) ?? state.withLock { $0.facts } }

    // MARK: - Using

    /// Returns one service's view of the vault.
    public func storage(service: String) -> AgentTokenStorage.Blocking {
        AgentTokenStorage.Blocking(vault: self, service: service)
    }

    /// Returns the items of every service, in the order of services and keys. Throws the same errors as
    /// `TokenStorage.list(_:)`.
    public func listAllServices(_ query: TokenQuery = .all) throws(TokenStorageError) -> TokenListing {
        try Validation(operation: "list", backend: AgentEndpoint.backend).check(query: query)
        return try list(service: nil, query)
    }

    func list(service: String?, _ query: TokenQuery) throws(TokenStorageError) -> TokenListing {
        try listing(.list(service: service, query: query), "list")
    }

    /// Returns the listing that answers `operation`.
    func listing(
        _ operation: AgentOperation, _ name: String
    ) throws(TokenStorageError) -> TokenListing {
        var listing = TokenListing(items: [])
        var isBegun = false
        return try perform(operation, name, isWrite: false) {
            (reader, isLast) throws(WireError) in
            // A repeated request on another connection begins with the first page again.
            if !isBegun { listing.items = [] }
            try reader.addPage(to: &listing, isLast: isLast)
            isBegun = !isLast
            return listing
        }
    }

    /// Closes the connections; later calls throw `closed`. The agent continues to hold the vault.
    public func close() {
        let (connections, feeds) = state.withLock { state in
            state.isClosed = true
            defer {
                state.connections = []
                state.feeds = [:]
            }
            return (state.connections, state.feeds.values.map { $0 })
        }
        for connection in connections { connection.end() }
        for feed in feeds { feed.stop() }
    }

    // MARK: - Asking

    /// Sends a request to the agent, and converts its errors for the caller.
    func perform<Value: Sendable>(
        _ operation: AgentOperation, _ name: String, isWrite: Bool, within timeout: Duration? = nil,
        _ read: (inout WireReader, _ isLast: Bool) throws(WireError) -> Value
    ) throws(TokenStorageError) -> Value {
        do throws(AgentConnection.Failure) {
            return try ask(operation, isWrite: isWrite, within: timeout, read)
        } catch {
            throw error.error(name, isWrite: isWrite)
        }
    }

    /// Sends a request to the agent: see ``AgentConnection/retrying(isWrite:within:_:)``.
    func ask<Value: Sendable>(
        _ operation: AgentOperation, of vault: VaultReference? = nil, isWrite: Bool = false,
        within timeout: Duration? = nil,
        _ read: (inout WireReader, _ isLast: Bool) throws(WireError) -> Value
    ) throws(AgentConnection.Failure) -> Value {
        try AgentConnection.retrying(isWrite: isWrite, within: timeout ?? self.timeout) {
            (left) throws(AgentConnection.Failure) in
            let connection: AgentConnection
            if let kept = try keptConnection() {
                connection = kept
            } else {
                connection = try AgentConnection(to: place, within: min(left, self.timeout))
            }
            defer { keep(connection) }
            return try connection.perform(operation, on: vault ?? reference, within: left, read)
        }
    }

    func keptConnection() throws(AgentConnection.Failure) -> AgentConnection? {
        guard process == ProcessFacts.identifier else {
            throw .refused(
                TokenStorageError(
                    .closed, operation: "", backend: AgentEndpoint.backend, reason: .permission(.agentFork)))
        }
        let (isClosed, connection) = state.withLock { ($0.isClosed, $0.connections.popLast()) }
        guard !isClosed else {
            throw .refused(TokenStorageError(.closed, operation: "", backend: AgentEndpoint.backend))
        }
        return connection
    }

    func keep(_ connection: AgentConnection) {
        guard connection.isUsable else { return }
        state.withLock { state in
            if !state.isClosed, state.connections.count < Self.keptConnections {
                state.connections.append(connection)
            }
        }
    }

    // MARK: - Observing

    /// Returns the changes in `service` from now on.
    func changes(service: String) -> TokenChanges {
        let feed = ChangeFeed(place: place, vault: reference, service: service, timeout: timeout)
        let identity = ObjectIdentifier(feed)
        let isClosed = state.withLock { state in
            if !state.isClosed { state.feeds[identity] = feed }
            return state.isClosed
        }
        if isClosed { feed.stop() }
        return feed.start { [weak self] in _ = self?.state.withLock { $0.feeds.removeValue(forKey: identity) }
        }
    }
}

extension AgentConnection.Failure {
    /// Converts the failure for the caller, as an error of `operation`.
    func error(_ operation: String, isWrite: Bool) -> TokenStorageError {
        var error: TokenStorageError
        switch self {
        case .refused(let reason), .absent(let reason), .unreachable(let reason): error = reason
        case .notHeld:
            error = TokenStorageError(
                .locked, operation: operation, backend: AgentEndpoint.backend,
                reason: .agent(.doesNotHoldVault))
        case .interrupted(let reason):
            error = reason
            if isWrite {
                error.code = .outcomeUnknown
                error.reason = .agentOutcomeUnknown(error.reason)
            }
        }
        if error.operation.isEmpty { error.operation = operation }
        return error
    }
}
