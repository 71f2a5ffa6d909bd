internal import Synchronization
internal import SystemPackage
internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

/// One client of the agent, served by a thread of its own: its requests one after the other.
final class ClientConnection: Sendable {
    /// What the connection is at, and since when.
    enum Activity {
        /// Nothing is asked.
        case idle(since: ContinuousClock.Instant)
        /// A request has begun to come.
        case receiving(since: ContinuousClock.Instant)
        /// A request is being answered.
        case working
        /// The client is to read an answer.
        case sending(since: ContinuousClock.Instant)
        /// Changes are told.
        case subscribed(since: ContinuousClock.Instant)
        /// It is at its end.
        case ended
    }

    /// Who has the connection.
    struct Context: Sendable {
        let handler: RequestHandler
        let limits: AgentLimits
        /// What room there is for commits.
        let budget: CommitBudget
        /// Asks whether there may be another subscription.
        let maySubscribe: @Sendable () -> Bool
        /// Whether the agent goes on.
        let goesOn: @Sendable () -> Bool
        /// Ends the agent.
        let endAgent: @Sendable () -> Void
    }

    /// The process at the other end.
    let process: Int32
    private let socket: UnixSocket
    private let context: Context
    private let activity: Mutex<Activity>

    init(_ socket: UnixSocket, from process: Int32, _ context: Context) {
        self.process = process
        self.socket = socket
        self.context = context
        activity = Mutex(.idle(since: .now))
    }

    var current: Activity { activity.withLock { $0 } }

    /// What the thread would find if it looked now.
    var arrival: UnixSocket.Arrival { socket.arrival }

    /// Ends the connection unless a request is being answered: false then. What the client asked for and was not begun it
    /// is told. With `evenSending`, a client that does not read its answer gets none.
    func endUnlessWorking(evenSending: Bool = false) -> Bool {
        let before = activity.withLock { activity -> Activity in
            switch activity {
            case .working: break
            case .sending where !evenSending: break
            default:
                defer { activity = .ended }
                return activity
            }
            return .working
        }
        switch before {
        case .working: return false
        // Nobody else writes: the thread begins nothing any more.
        case .idle, .receiving: Self.sayGoodbye(to: socket)
        case .sending, .subscribed, .ended: break
        }
        socket.end()
        return true
    }

    /// Tells a client that what it has asked for was not begun.
    static func sayGoodbye(to socket: UnixSocket) {
        let buffer = WipedBuffer(capacity: 64)
        var writer = WireWriter(buffer)
        writer.begin(.goodbye, id: 0)
        _ = writer.end()
        try? buffer.send(to: socket, until: Deadline(after: .zero))
    }

    /// Ends the connection, whatever it is at.
    func end() {
        activity.withLock { $0 = .ended }
        socket.end()
    }

    /// Serves the client until one of both ends it.
    func serve() {
        let incoming = WipedBuffer(capacity: 4 << 10)
        let outgoing = WipedBuffer(capacity: 4 << 10)
        defer { end() }
        do throws(SystemFailure) {
            guard try receive(into: incoming), try greet(incoming, outgoing) else { return }
            let parts = CommitParts(context.budget, of: process)
            while try receive(into: incoming, since: parts.deadline) {
                guard let changes = try answerOne(incoming, outgoing, parts) else { continue }
                guard incoming.count == 0 else { return }
                return tell(changes.changes, as: changes.id, incoming)
            }
        } catch {
            // The client is gone, or too slow, or has sent what no client sends.
            return
        }
    }

    /// Receives until there is a whole frame, within `begun` if it is the next one of a request. False when the
    /// connection has ended.
    private func receive(
        into incoming: WipedBuffer, since begun: Deadline? = nil
    ) throws(SystemFailure) -> Bool {
        var deadline = begun
        while true {
            // The next part may be there: a client that sends without end has no more time than another.
            if begun?.hasPassed ?? false { return false }
            do throws(WireError) {
                if try WireFrame.payload(in: incoming) != nil { return true }
            } catch {
                return false
            }
            if incoming.count > 0 || deadline != nil {
                let until = deadline ?? Deadline(after: context.limits.requestTime)
                if deadline == nil, !become({ .receiving(since: $0) }) {
                    Self.sayGoodbye(to: socket)
                    return false
                }
                deadline = until
                try socket.wait(until: until)
            }
            let limit = max(WireFrame.announced(in: incoming) ?? 0, 4 << 10)
            guard try incoming.receive(from: socket, upTo: limit) > 0 else { return false }
        }
    }

    /// Takes on another activity; false when somebody has ended the connection.
    private func become(_ next: (ContinuousClock.Instant) -> Activity) -> Bool {
        activity.withLock { activity in
            if case .ended = activity { return false }
            activity = next(.now)
            return true
        }
    }

    private func send(_ outgoing: WipedBuffer) throws(SystemFailure) {
        let before = activity.withLock { activity in
            defer { if case .working = activity { activity = .sending(since: .now) } }
            return activity
        }
        defer {
            if case .working = before {
                activity.withLock { if case .sending = $0 { $0 = .working } }
            }
        }
        try outgoing.send(to: socket, until: Deadline(after: context.limits.answerTime))
    }

    /// Answers the client's first frame. False when it speaks something else.
    private func greet(_ incoming: WipedBuffer, _ outgoing: WipedBuffer) throws(SystemFailure) -> Bool {
        let versions: ClosedRange<UInt16>
        do throws(WireError) {
            guard let range = try WireFrame.payload(in: incoming) else { return false }
            defer { incoming.removeFirst(range.upperBound) }
            var reader = WireReader(incoming, in: range)
            versions = try reader.hello()
        } catch {
            return false
        }
        var writer = WireWriter(outgoing)
        writer.appendHello()
        // It goes with the first answer: one write less. Who speaks another version is told which one is spoken here.
        if versions.contains(AgentWire.version) { return true }
        try send(outgoing)
        return false
    }

    private func answerOne(
        _ incoming: WipedBuffer, _ outgoing: WipedBuffer, _ parts: CommitParts
    ) throws(SystemFailure) -> (changes: TokenChanges, id: UInt32)? {
        guard become({ _ in .working }) else {
            // Who ended the connection may not have come to say so.
            Self.sayGoodbye(to: socket)
            throw SystemFailure(.connectionReset, "recv")
        }
        var request: AgentRequest
        do throws(WireError) {
            guard let range = try WireFrame.payload(in: incoming) else { throw .tooShort }
            defer { incoming.removeFirst(range.upperBound) }
            var reader = WireReader(incoming, in: range)
            request = try AgentRequest(&reader)
            if try parts.take(&request, length: range.count, within: context.limits.requestTime) {
                guard become({ .receiving(since: $0) }) else { throw .tooShort }
                return nil
            }
        } catch {
            throw SystemFailure(.protocolError, "recv")
        }
        defer { parts.removeAll() }
        if case .subscribe = request.operation, !context.maySubscribe() {
            throw SystemFailure(.tooManyOpenFiles, "accept4")
        }
        var writer = WireWriter(outgoing)
        guard !parts.isRefused else {
            context.handler.answer(request, &writer, with: .tooManyParts)
            try send(outgoing)
            guard become({ .idle(since: $0) }) else { throw SystemFailure(.connectionReset, "recv") }
            return nil
        }
        let consequence = try context.handler.answer(request, &writer) { () throws(SystemFailure) in
            try send(outgoing)
        }
        if case .subscription(let changes) = consequence {
            guard become({ .subscribed(since: $0) }) else { throw SystemFailure(.connectionReset, "send") }
            try send(outgoing)
            return (changes, request.id)
        }
        try send(outgoing)
        if case .end = consequence { context.endAgent() }
        guard context.goesOn() else {
            // The next request may be there already.
            Self.sayGoodbye(to: socket)
            throw SystemFailure(.connectionReset, "recv")
        }
        guard become({ .idle(since: $0) }) else { throw SystemFailure(.connectionReset, "recv") }
        return nil
    }

    /// Tells changes until the client goes away, which this thread waits for, or does not read them.
    private func tell(_ changes: TokenChanges, as id: UInt32, _ incoming: WipedBuffer) {
        let teller = WorkerThread(name: "agent-teller")
        guard teller.isRunning else { return }
        let task = Task.detached { [self] in
            // The next change is taken when the one before was sent: what waits meanwhile is bounded and merged.
            for await event in changes {
                let isSent = await withCheckedContinuation { continuation in
                    teller.run { continuation.resume(returning: self.tell(event, as: id)) }
                }
                if !isSent { break }
            }
            self.socket.end()
        }
        // A subscriber says nothing more.
        _ = try? incoming.receive(from: socket, upTo: 1)
        socket.end()
        task.cancel()
    }

    private func tell(_ event: TokenEvent, as id: UInt32) -> Bool {
        let outgoing = WipedBuffer(capacity: 256)
        var writer = WireWriter(outgoing)
        writer.begin(.event, id: id)
        writer.append(event)
        _ = writer.end()
        do throws(SystemFailure) {
            try send(outgoing)
            return true
        } catch {
            return false
        }
    }
}
