internal import SystemPackage
package import TokenVault
package import TokenVaultPlatform

/// One connection to the agent: one request at a time, and its answer.
package final class AgentConnection: Sendable {
    /// The reason that there is no answer.
    package enum Failure: Error, Sendable {
        /// The agent answered with this error.
        case refused(TokenStorageError)
        /// The agent does not hold the vault.
        case notHeld
        /// No process listens here: no agent runs.
        case absent(TokenStorageError)
        /// The agent could not be reached: nothing was done.
        case unreachable(TokenStorageError)
        /// The connection or the time ended after the request was sent: the outcome is unknown.
        case interrupted(TokenStorageError)
    }

    struct Exchange {
        let outgoing = WipedBuffer(capacity: 4 << 10)
        let incoming = WipedBuffer(capacity: 16 << 10)
        var isGreeted = false
        var isUsable = true
        /// Whether part of the answer has arrived.
        var hasBegun = false
        var number: UInt32 = 0
        var receiveTimeout: Duration?
    }

    let socket: UnixSocket
    /// The agent's place, if known.
    private let place: AgentEndpoint?
    // Not a Mutex, since the value that is read belongs to the caller.
    private let exchange = Monitor(Exchange())

    /// Creates a connection over `socket`.
    package init(_ socket: UnixSocket, of place: AgentEndpoint? = nil) {
        self.socket = socket
        self.place = place
    }

    /// Connects to the agent at `place`.
    package convenience init(to place: AgentEndpoint, within timeout: Duration) throws(Failure) {
        var isTaken = false
        do throws(SocketDirectory.Failure) {
            let directory = try SocketDirectory(place.directory, creating: false)
            do throws(SocketDirectory.Failure) {
                self.init(
                    try directory.connect(to: AgentEndpoint.socketName, within: timeout), of: place)
            } catch {
                // An agent that starts or ends, or whose socket was removed. It may hold keys.
                isTaken = directory.holder != nil
                throw error
            }
        } catch {
            guard error.saysNobodyListens else { throw .unreachable(error.error) }
            throw isTaken ? .unreachable(Self.outOfReach) : .absent(error.error)
        }
    }

    private static let outOfReach = TokenStorageError(
        .unavailable, operation: "", backend: AgentEndpoint.backend, reason: .agent(.notListening))

    /// Whether the connection can take another request.
    package var isUsable: Bool { exchange.withLock { $0.isUsable } }

    /// Ends the connection; a waiting caller gets no answer.
    package func end() { socket.end() }

    /// A request that was sent, and whose answer is still to be read.
    package struct Pending: Sendable {
        fileprivate let id: UInt32
        fileprivate let deadline: Deadline
    }

    /// Sends a request and reads its answer within `timeout`. `read` gets each part, with `true` for the last
    /// one.
    package func perform<Value: Sendable>(
        _ operation: AgentOperation, on vault: VaultReference, within timeout: Duration,
        _ read: (inout WireReader, _ isLast: Bool) throws(WireError) -> Value
    ) throws(Failure) -> Value {
        try finish(try begin(operation, on: vault, within: timeout), read)
    }

    /// Sends a request whose answer has to come within `timeout`.
    package func begin(
        _ operation: AgentOperation, on vault: VaultReference, within timeout: Duration
    ) throws(Failure) -> Pending {
        try exchanging { (exchange) throws(Failure) in
            let deadline = Deadline(after: timeout)
            let id = try send(operation, on: vault, until: deadline, timeout: timeout, &exchange)
            return Pending(id: id, deadline: deadline)
        }
    }

    /// Returns whether the answer can be read without waiting: it is complete, or has failed. Checks without
    /// sleeping.
    package func isAnswered() -> Bool {
        exchange.withLock { exchange in
            let incoming = exchange.incoming
            do {
                while try WireFrame.payload(in: incoming) == nil {
                    let limit = max(WireFrame.announced(in: incoming) ?? 0, 16 << 10)
                    guard let count = try incoming.receiveSoon(from: socket, upTo: limit) else {
                        return false
                    }
                    if count == 0 { return true }
                }
                // The answer follows the hello, and may still be on its way.
                return exchange.isGreeted
            } catch {
                return true
            }
        }
    }

    /// Reads the answer to a request that was begun.
    package func finish<Value: Sendable>(
        _ pending: Pending, _ read: (inout WireReader, _ isLast: Bool) throws(WireError) -> Value
    ) throws(Failure) -> Value {
        try exchanging { (exchange) throws(Failure) in
            try answer(to: pending.id, until: pending.deadline, &exchange, read)
        }
    }

    /// Runs a part of an exchange. The connection is unusable after a failure in the middle of it.
    private func exchanging<Value>(_ body: (inout Exchange) throws(Failure) -> Value) throws(Failure) -> Value
    {
        try exchange.withLock { exchange throws(Failure) in
            do throws(Failure) {
                return try body(&exchange)
            } catch {
                switch error {
                case .refused, .notHeld: break
                case .absent, .unreachable, .interrupted:
                    exchange.isUsable = false
                    exchange.incoming.removeAll()
                }
                throw error
            }
        }
    }

    /// Waits for the next event of a subscription, without a time limit; returns `nil` when the connection
    /// has ended.
    package func nextEvent() -> TokenEvent? {
        exchange.withLock { exchange in
            do throws(Failure) {
                if exchange.receiveTimeout != nil {
                    try? socket.setReceiveTimeout(nil)
                    exchange.receiveTimeout = nil
                }
                let (kind, range) = try nextFrame(until: nil, &exchange)
                defer { exchange.incoming.removeFirst(range.upperBound) }
                guard kind == .event else { return nil }
                var reader = WireReader(exchange.incoming, in: range.dropFirst(5))
                return try? reader.event()
            } catch {
                return nil
            }
        }
    }

    private func send(
        _ operation: AgentOperation, on vault: VaultReference, until deadline: Deadline, timeout: Duration,
        _ exchange: inout Exchange
    ) throws(Failure) -> UInt32 {
        var writer = WireWriter(exchange.outgoing)
        exchange.hasBegun = false
        if exchange.number == 0 { writer.appendHello() }
        exchange.number = max(1, exchange.number &+ 1)
        let request = AgentRequest(id: exchange.number, vault: vault, operation: operation)
        guard request.write(to: &writer) else {
            exchange.outgoing.removeAll()
            throw .unreachable(
                TokenStorageError(
                    .tooLarge, operation: "", backend: AgentEndpoint.backend, reason: .limit(.itemSize)))
        }
        do throws(SystemFailure) {
            if exchange.receiveTimeout != timeout {
                try socket.setReceiveTimeout(timeout)
                exchange.receiveTimeout = timeout
            }
            try exchange.outgoing.send(to: socket, until: deadline)
        } catch {
            // The agent drops an incomplete request.
            throw .unreachable(self.error(for: error))
        }
        return exchange.number
    }

    private enum Answer<Value> {
        case value(Value)
        case more
        case failure(Failure)
    }

    private func answer<Value>(
        to id: UInt32, until deadline: Deadline, _ exchange: inout Exchange,
        _ read: (inout WireReader, _ isLast: Bool) throws(WireError) -> Value
    ) throws(Failure) -> Value {
        while true {
            if deadline.hasPassed { throw .interrupted(error(for: SystemFailure(.timedOut, "recv"))) }
            let (kind, range) = try nextFrame(until: deadline, &exchange)
            defer { exchange.incoming.removeFirst(range.upperBound) }
            let answer: Answer<Value>
            do throws(WireError) {
                answer = try Self.answer(kind, at: range, to: id, &exchange, read)
            } catch {
                throw .interrupted(
                    Self.error(
                        .unavailable,
                        .agent(error == .version ? .otherVersion : .unreadableAnswer)))
            }
            switch answer {
            case .value(let value): return value
            case .more: continue
            case .failure(let failure): throw failure
            }
        }
    }

    private static func answer<Value>(
        _ kind: AgentWire.Kind, at range: Range<Int>, to id: UInt32, _ exchange: inout Exchange,
        _ read: (inout WireReader, _ isLast: Bool) throws(WireError) -> Value
    ) throws(WireError) -> Answer<Value> {
        var reader = WireReader(exchange.incoming, in: range)
        if kind == .hello {
            guard !exchange.isGreeted else { throw .outOfBounds }
            guard try reader.hello().contains(AgentWire.version) else { throw .version }
            exchange.isGreeted = true
            return .more
        }
        let answered = try reader.integer(UInt32.self)
        _ = try reader.integer(UInt8.self)
        if kind == .goodbye {
            return .failure(.unreachable(error(.unavailable, .agent(.endedConnection))))
        }
        guard answered == id, exchange.isGreeted else { throw .outOfBounds }
        switch kind {
        case .result, .part:
            let value = try read(&reader, kind == .result)
            try reader.finish()
            return kind == .result ? .value(value) : .more
        case .failure: return .failure(.refused(try reader.error()))
        case .notHeld: return .failure(.notHeld)
        default: throw .outOfBounds
        }
    }

    /// Reads one frame; returns its kind and the range of its payload. Bytes of the next frame stay in the
    /// buffer.
    private func nextFrame(
        until deadline: Deadline?, _ exchange: inout Exchange
    ) throws(Failure) -> (AgentWire.Kind, Range<Int>) {
        let incoming = exchange.incoming
        while true {
            do throws(WireError) {
                if let range = try WireFrame.payload(in: incoming) {
                    return (try WireFrame.kind(of: incoming, range), range)
                }
            } catch {
                throw .interrupted(Self.error(.unavailable, .agent(.unreadableAnswer)))
            }
            do throws(SystemFailure) {
                // Also applies to an agent that sends without end.
                if deadline?.hasPassed ?? false { throw SystemFailure(.timedOut, "recv") }
                // Waits for the rest of an answer that has begun.
                if let deadline, incoming.count > 0 || exchange.hasBegun { try socket.wait(until: deadline) }
                let limit = max(WireFrame.announced(in: incoming) ?? 0, 16 << 10)
                guard try incoming.receive(from: socket, upTo: limit) > 0 else {
                    throw SystemFailure(.connectionReset, "recv")
                }
                exchange.hasBegun = true
            } catch {
                throw .interrupted(self.error(for: error))
            }
        }
    }

    private static func error(
        _ code: TokenStorageError.Code, _ reason: TokenStorageError.Reason
    ) -> TokenStorageError {
        TokenStorageError(code, operation: "", backend: AgentEndpoint.backend, reason: reason)
    }

    private func error(for failure: SystemFailure) -> TokenStorageError {
        switch failure.errno {
        case Errno.timedOut:
            // The agent is suspended or hangs: the user can end it, and work without it until then.
            TokenStorageError(
                .timedOut, operation: "", backend: AgentEndpoint.backend,
                reason: .agentSilent(process: place?.holder))
        default:
            Self.error(.unavailable, .agentLost(.init(failure)))
        }
    }
}

extension AgentConnection {
    /// Runs `ask` until it succeeds, for `timeout` at most, and passes it the remaining time. Repeats a
    /// request that certainly was not begun: a full agent ends idle connections. Also repeats an interrupted
    /// read (`isWrite` false) a few times, since each lock interrupts the answers under way.
    static func retrying<Value>(
        isWrite: Bool, within timeout: Duration, _ ask: (Duration) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let deadline = Deadline(after: timeout)
        var left = timeout
        var backOff = BackOff()
        var interruptions = isWrite ? mostInterruptions : 0
        while true {
            do throws(Failure) {
                return try ask(left)
            } catch {
                switch error {
                case .unreachable(let reason) where reason.code == .unavailable:
                    guard backOff.wait(until: deadline) else { throw error }
                case .interrupted(let reason)
                where reason.code == .unavailable && interruptions < mostInterruptions:
                    interruptions += 1
                default: throw error
                }
            }
            left = deadline.remaining
        }
    }

    private static let mostInterruptions = 5
}
