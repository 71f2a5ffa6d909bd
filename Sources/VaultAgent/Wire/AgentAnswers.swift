public import TokenVault
internal import TokenVaultPlatform

/// The agent's information about a vault that it holds, for every storage of it.
package struct VaultInfo: Equatable, Sendable {
    package var identifier: String
    package var state: LockState
    package var supportedPolicies: Set<AccessPolicy>
    package var defaultPolicy: AccessPolicy

    package init(
        identifier: String, state: LockState, supportedPolicies: Set<AccessPolicy>,
        defaultPolicy: AccessPolicy
    ) {
        self.identifier = identifier
        self.state = state
        self.supportedPolicies = supportedPolicies
        self.defaultPolicy = defaultPolicy
    }
}

/// The status of a vault that only a holder of its keys can report.
public struct AgentVaultStatus: Equatable, Sendable {
    /// The path of the vault's file.
    public var path: FilePath
    /// The lock state.
    public var state: LockState
    /// The number of items of all services; `nil` when the agent could not read it.
    public var items: Int?
    /// The bytes of the file that compaction would free; `nil` when the agent could not read it.
    public var reclaimable: Int?
    /// Whether the vault has an anchor, which detects an older copy of the file.
    public var isAnchored: Bool
    /// Whether this device's items can be used; `nil` when the agent could not read it.
    public var isEnrolled: Bool?
    /// The number of the slot that unlocked the vault; `nil` when the agent could not read it.
    public var slot: Int?
    /// The time without use after which the vault locks; `nil` for never.
    public var idleTime: Duration?
    /// The reason that the vault does not lock with the login session or before the machine sleeps; `nil`
    /// when it does.
    public var sessionObstacle: String?

    package init(
        path: FilePath, state: LockState, items: Int? = nil, reclaimable: Int? = nil,
        isAnchored: Bool = false,
        isEnrolled: Bool? = nil, slot: Int? = nil, idleTime: Duration? = nil,
        sessionObstacle: String? = nil
    ) {
        self.path = path
        self.state = state
        self.items = items
        self.reclaimable = reclaimable
        self.isAnchored = isAnchored
        self.isEnrolled = isEnrolled
        self.slot = slot
        self.idleTime = idleTime
        self.sessionObstacle = sessionObstacle
    }
}

extension WireWriter {
    package func append(_ facts: VaultInfo) {
        append(text: facts.identifier)
        append(facts.state)
        append(facts.supportedPolicies)
        append(facts.defaultPolicy)
    }

    package func append(_ status: AgentVaultStatus) {
        append(path: status.path)
        append(status.state)
        append(status.items) { append(UInt64(max($0, 0))) }
        append(status.reclaimable) { append(UInt64(max($0, 0))) }
        append(flag: status.isAnchored)
        append(status.isEnrolled) { append(flag: $0) }
        append(status.slot) { append(UInt32(clamping: $0)) }
        append(status.idleTime) { append(UInt64(max($0.components.seconds, 0))) }
        append(status.sessionObstacle) { append(text: $0) }
    }

    /// Writes the first frame of each side: the versions that the client supports, or the version that the
    /// agent has chosen.
    package mutating func appendHello(lowest: UInt16 = AgentWire.version, highest: UInt16 = AgentWire.version)
    {
        begin(.hello, id: 0)
        buffer.append(AgentWire.magic)
        append(lowest)
        append(highest)
        _ = end()
    }
}

extension WireReader {
    package mutating func facts() throws(WireError) -> VaultInfo {
        let identifier = try text(limit: 64)
        let state = try lockState()
        let policies = try policies()
        return VaultInfo(
            identifier: identifier, state: state, supportedPolicies: policies, defaultPolicy: try policy())
    }

    package mutating func status() throws(WireError) -> AgentVaultStatus {
        let path = try path()
        var status = AgentVaultStatus(path: path, state: try lockState())
        status.items = try optional { (reader) throws(WireError) in try reader.size() }
        status.reclaimable = try optional { (reader) throws(WireError) in try reader.size() }
        status.isAnchored = try flag()
        status.isEnrolled = try optional { (reader) throws(WireError) in try reader.flag() }
        status.slot = try optional { (reader) throws(WireError) in Int(try reader.integer(UInt32.self)) }
        status.idleTime = try optional { (reader) throws(WireError) in .seconds(try reader.size()) }
        status.sessionObstacle = try optional { (reader) throws(WireError) in try reader.text(limit: 1_024) }
        return status
    }

    private mutating func size() throws(WireError) -> Int {
        guard let size = Int(exactly: try integer(UInt64.self)), size < 1 << 53 else { throw .outOfBounds }
        return size
    }

    /// Reads the versions of a `hello`, including its number and kind.
    package mutating func hello() throws(WireError) -> ClosedRange<UInt16> {
        guard try integer(UInt32.self) == 0, try integer(UInt8.self) == AgentWire.Kind.hello.rawValue,
            try fixed(AgentWire.magic.count) == AgentWire.magic
        else { throw .outOfBounds }
        let lowest = try integer(UInt16.self)
        let highest = try integer(UInt16.self)
        guard lowest <= highest else { throw .outOfBounds }
        // A newer side may add fields.
        return lowest...highest
    }
}
