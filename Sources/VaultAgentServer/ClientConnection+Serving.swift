internal import SystemPackage
internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

extension ClientConnection {
    /// Serves the client until either side ends the connection.
    func serve() {
        let incoming = WipedBuffer(capacity: 4 << 10)
        let outgoing = WipedBuffer(capacity: 4 << 10)
        defer {
            end()
            // Lets the vault be closed now, even while this object is still referenced.
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
            // The client is gone, too slow, or has sent invalid data.
            return
        }
    }

    /// Receives until there is a whole frame, before `begun` if it continues a request. Returns false when
    /// the connection has ended.
    private func receive(
        into incoming: WipedBuffer, since begun: Deadline? = nil
    ) throws(SystemFailure) -> Bool {
        var deadline = begun
        while true {
            // The next part may already be there: a client that sends without end gets no extra time.
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

    /// Answers the client's first frame. Returns false when the client uses another protocol or version.
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
        // The hello is sent with the first answer, to save a write. A client of another version gets it at
        // once, with the version of this agent.
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
            // The next request may already be there.
            Self.sayGoodbye(to: socket)
            throw SystemFailure(.connectionReset, "recv")
        }
        guard become({ .idle(since: $0) }) else { throw SystemFailure(.connectionReset, "recv") }
        return nil
    }

    /// Returns the turn for decoding a long request; `nil` for a short one. The decoded changes may need many
    /// times the memory of their bytes, so only a few requests are decoded at once.
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

    /// Carries out the request and sends the answer. Repeats the request if the vault was locked before any
    /// of the answer was sent, or was replaced. The answer then has only data that is still accessible.
    private func work(
        _ request: AgentRequest, in turn: TurnQueue.Turn?, _ outgoing: WipedBuffer
    ) throws(SystemFailure) -> RequestHandler.Consequence {
        let start = outgoing.count
        // The limit is never reached in practice: each lock takes its client longer than the read.
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
                // Set before the client gets its answer, so that a lock from here on also covers these
                // changes.
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
            // Another thread may have ended the connection without a goodbye.
            Self.sayGoodbye(to: socket)
            throw SystemFailure(.connectionReset, "recv")
        }
    }

    /// Waits for the turn that the request needs, and returns it; `nil` when the request needs none. Throws
    /// `timedOut` when the turn did not come, and `closed` when the client is gone.
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
    /// Whether the operation only takes access away.
    fileprivate var isLocking: Bool {
        switch self {
        case .lock, .lockAll, .close, .stop: true
        default: false
        }
    }
}
