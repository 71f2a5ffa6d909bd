internal import SystemPackage
internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

extension ClientConnection {
    /// Serves the client until one of both ends it.
    func serve() {
        let incoming = WipedBuffer(capacity: 4 << 10)
        let outgoing = WipedBuffer(capacity: 4 << 10)
        defer {
            end()
            // The vault can be closed now, even while this object is still referenced.
            endUse()
        }
        do throws(SystemFailure) {
            guard try receive(into: incoming), try greet(incoming, outgoing) else { return }
            let parts = CommitParts(context.budget, of: process)
            var known: KnownVault?
            while try receive(into: incoming, since: parts.deadline) {
                guard let changes = try answerOne(incoming, outgoing, parts, &known) else { continue }
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
        _ incoming: WipedBuffer, _ outgoing: WipedBuffer, _ parts: CommitParts, _ known: inout KnownVault?
    ) throws(SystemFailure) -> (changes: TokenChanges, id: UInt32)? {
        try beginWork()
        let decoding = try decodingTurn(incoming)
        if decoding != nil { try beginWork() }
        var request: AgentRequest
        do throws(WireError) {
            defer { withExtendedLifetime(decoding) {} }
            guard let range = try WireFrame.payload(in: incoming) else { throw .tooShort }
            defer { incoming.removeFirst(range.upperBound) }
            var reader = WireReader(incoming, in: range)
            request = try AgentRequest(&reader, knowing: &known)
            if try parts.take(&request, length: range.count, within: context.limits.requestTime) {
                guard become({ .receiving(since: $0) }) else { throw .tooShort }
                return nil
            }
        } catch {
            throw SystemFailure(.protocolError, "recv")
        }
        defer { parts.removeAll() }
        guard !context.isForLocking || request.operation.isLocking else {
            Self.sayGoodbye(to: socket)
            throw SystemFailure(.connectionReset, "recv")
        }
        if case .subscribe = request.operation, !context.maySubscribe() {
            throw SystemFailure(.tooManyOpenFiles, "accept4")
        }
        guard !parts.isRefused else {
            try refuse(request, with: .tooManyParts, outgoing)
            return nil
        }
        let turn: TurnQueue.Turn?
        do throws(TokenStorageError) {
            turn = try self.turn(for: request)
        } catch {
            guard error.code == .timedOut else { throw SystemFailure(.connectionReset, "recv") }
            try refuse(request, with: error, outgoing)
            return nil
        }
        if turn != nil { try beginWork() }
        defer { endReading() }
        let consequence = try work(request, in: turn, outgoing)
        if case .subscription(let changes, _, _) = consequence { return (changes, request.id) }
        if case .end = consequence { context.endAgent() }
        guard context.goesOn() else {
            // The next request may be there already.
            Self.sayGoodbye(to: socket)
            throw SystemFailure(.connectionReset, "recv")
        }
        guard become({ .idle(since: $0) }) else { throw SystemFailure(.connectionReset, "recv") }
        return nil
    }

    /// The turn to take in a long request: until it is known how much memory its changes take, many times that of its bytes,
    /// only few are taken in at once. `nil` for a short one.
    private func decodingTurn(_ incoming: WipedBuffer) throws(SystemFailure) -> TurnQueue.Turn? {
        guard incoming.count > 16 << 10, become({ .waiting(since: $0) }) else { return nil }
        do throws(TurnQueue.Refusal) {
            return try context.handler.vaults.decodingTurns.turn(
                for: process, atMost: context.limits.turnTime
            ) {
                guard case .waiting = current else { return false }
                return !socket.isPeerGone
            }
        } catch {
            Self.sayGoodbye(to: socket)
            throw SystemFailure(.connectionReset, "recv")
        }
    }

    private func refuse(
        _ request: AgentRequest, with error: TokenStorageError, _ outgoing: WipedBuffer
    ) throws(SystemFailure) {
        try beginWork()
        var writer = WireWriter(outgoing)
        context.handler.answer(request, &writer, with: error)
        try send(outgoing)
        guard become({ .idle(since: $0) }) else { throw SystemFailure(.connectionReset, "recv") }
    }

    /// Does what is asked for and sends the answer. When the vault is locked before anything of that was sent, or another
    /// took its place, it is asked anew: what may still be told is.
    private func work(
        _ request: AgentRequest, in turn: TurnQueue.Turn?, _ outgoing: WipedBuffer
    ) throws(SystemFailure) -> RequestHandler.Consequence {
        let start = outgoing.count
        // However often it is locked: each time takes the one who locks longer than the one who reads.
        for _ in 0..<1_000 {
            endReading()
            var writer = WireWriter(outgoing)
            var isSent = false
            let consequence = try context.handler.answer(request, in: turn, &writer) {
                begin(reading: request, of: $0)
            } flush: { () throws(SystemFailure) in
                isSent = true
                try send(outgoing)
            }
            if case .again = consequence { continue }
            if case .subscription(let changes, let use, let locks) = consequence {
                // Before anybody is told that changes are: who locks from here on means these too.
                begin(telling: changes, of: use, since: locks)
                guard become({ .subscribed(since: $0) }) else { break }
            }
            do throws(SystemFailure) {
                try send(outgoing)
                return consequence
            } catch {
                guard isReadingRevoked, !isSent else { throw error }
                outgoing.truncate(to: start)
            }
        }
        throw SystemFailure(.connectionReset, "send")
    }

    private func beginWork() throws(SystemFailure) {
        guard become({ _ in .working }) else {
            // Who ended the connection may not have come to say so.
            Self.sayGoodbye(to: socket)
            throw SystemFailure(.connectionReset, "recv")
        }
    }

    /// The turn that the request needs, waiting for it; `nil` when it needs none. Throws `timedOut` when it has not come, and
    /// `closed` when there is nobody any more to answer.
    private func turn(for request: AgentRequest) throws(TokenStorageError) -> TurnQueue.Turn? {
        let vaults = context.handler.vaults
        let (queue, refusal): (TurnQueue, TokenStorageError)
        switch request.operation {
        case .unlock: (queue, refusal) = (vaults.unlockTurns, .othersUnlock)
        case .list, .history: (queue, refusal) = (vaults.listTurns, .othersList)
        default: return nil
        }
        guard become({ .waiting(since: $0) }) else { throw .nobodyWaits }
        do throws(TurnQueue.Refusal) {
            return try queue.turn(
                for: process, atMost: context.limits.turnTime, whileWaiting: context.endUnreadListings
            ) {
                guard case .waiting = current else { return false }
                return !socket.isPeerGone
            }
        } catch {
            throw error == .timedOut ? refusal : .nobodyWaits
        }
    }
}

extension AgentOperation {
    /// Whether it takes something from those who read, and gives nothing.
    fileprivate var isLocking: Bool {
        switch self {
        case .lock, .lockAll, .close, .stop: true
        default: false
        }
    }
}
