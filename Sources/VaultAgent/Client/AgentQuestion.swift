internal import TokenVault
internal import TokenVaultPlatform

/// A request for one item, which the agent answers quickly. The answer may arrive before a waiting thread
/// would start.
struct AgentQuestion<Value: Sendable>: Sendable {
    let operation: AgentOperation
    /// The operation's name in errors.
    let name: String
    let read: @Sendable (inout WireReader) throws(WireError) -> Value

    private init(
        _ name: String, _ service: String, _ key: TokenKey, _ operation: AgentOperation,
        _ read: @escaping @Sendable (inout WireReader) throws(WireError) -> Value
    ) throws(TokenStorageError) {
        let rules = Validation(operation: name, backend: AgentEndpoint.backend)
        try rules.check(service: service)
        try rules.check(key: key)
        self.operation = operation
        self.name = name
        self.read = read
    }
}

extension AgentQuestion where Value == Secret? {
    static func secret(_ key: TokenKey, of service: String) throws(TokenStorageError) -> Self {
        try Self("retrieve", service, key, .secret(service: service, key: key)) {
            (reader) throws(WireError) in
            try reader.optional { (reader) throws(WireError) in try reader.secret() }
        }
    }
}

extension AgentQuestion where Value == TokenItem? {
    static func item(_ key: TokenKey, of service: String) throws(TokenStorageError) -> Self {
        try Self("retrieve", service, key, .item(service: service, key: key)) { (reader) throws(WireError) in
            try reader.optional { (reader) throws(WireError) in try reader.item() }
        }
    }
}

extension AgentQuestion where Value == TokenMetadata? {
    static func metadata(_ key: TokenKey, of service: String) throws(TokenStorageError) -> Self {
        try Self("info", service, key, .metadata(service: service, key: key)) { (reader) throws(WireError) in
            try reader.optional { (reader) throws(WireError) in try reader.metadata() }
        }
    }
}

/// The agent's answer about a vault that it may not hold.
package enum AgentAnswer<Value: Sendable>: Sendable {
    case held(Value)
    /// The agent does not hold the vault, or no agent runs.
    case notHeld
}

/// A request that was sent and is not answered yet.
struct BegunQuestion<Value: Sendable>: Sendable {
    let question: AgentQuestion<Value>
    let vault: BlockingAgentVault
    let connection: AgentConnection
    let pending: AgentConnection.Pending

    /// Whether ``finish()`` would not wait. Checks without sleeping.
    var isAnswered: Bool { connection.isAnswered() }

    /// Reads the answer; returns `nil` when the connection has failed and the request has to be sent again.
    func finish() throws(TokenStorageError) -> Value? {
        do throws(AgentConnection.Failure) {
            let value = try connection.finish(pending) { (reader, _) throws(WireError) in
                try question.read(&reader)
            }
            vault.keep(connection)
            return value
        } catch {
            switch error {
            case .refused, .notHeld: vault.keep(connection)
            case .absent: break
            case .unreachable(let reason), .interrupted(let reason):
                if reason.code == .unavailable { return nil }
            }
            throw error.error(question.name, isWrite: false)
        }
    }
}

extension BlockingAgentVault {
    /// Sends the request and waits for the answer.
    func answer<Value>(to question: AgentQuestion<Value>) throws(TokenStorageError) -> Value {
        try perform(question.operation, question.name, isWrite: false) { (reader, _) throws(WireError) in
            try question.read(&reader)
        }
    }

    /// Sends the request and waits for the answer; returns ``AgentAnswer/notHeld`` when the agent does not
    /// hold the vault or none runs.
    func answerIfHeld<Value>(
        to question: AgentQuestion<Value>
    ) throws(TokenStorageError) -> AgentAnswer<Value> {
        do throws(AgentConnection.Failure) {
            return .held(
                try ask(question.operation) { (reader, _) throws(WireError) in try question.read(&reader) })
        } catch {
            switch error {
            case .notHeld: return .notHeld
            case .absent: return .notHeld
            default: throw error.error(question.name, isWrite: false)
            }
        }
    }

    /// Sends the request on an existing connection; returns `nil` when there is none.
    func begin<Value>(_ question: AgentQuestion<Value>) -> BegunQuestion<Value>? {
        guard let connection = try? keptConnection(),
            let pending = try? connection.begin(question.operation, on: reference, within: timeout)
        else { return nil }
        return BegunQuestion(question: question, vault: self, connection: connection, pending: pending)
    }
}

extension WorkerPool {
    /// Returns the result of `finish` for a request that was begun. Needs no thread if the answer comes soon;
    /// otherwise uses a thread that waits. If `finish` returns `nil`, or no request was begun, calls `again`
    /// on such a thread.
    func answer<Value>(
        _ begun: BegunQuestion<Value>?,
        finish: @escaping @Sendable (BegunQuestion<Value>) throws(TokenStorageError) -> Value?,
        again: @escaping @Sendable () throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value {
        guard let begun else { return try await result(again) }
        let isAnswered = begun.isAnswered
        if isAnswered, let value = try finish(begun) { return value }
        return try await result { () throws(TokenStorageError) in
            if !isAnswered, let value = try finish(begun) { return value }
            return try again()
        }
    }
}
