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
        /// A request waits for its turn; nothing of it was begun.
        case waiting(since: ContinuousClock.Instant)
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
        /// Whether it is one of the last, which are kept for those who lock.
        var isForLocking = false
        /// Ends those who keep others from a listing, and do not read theirs.
        let endUnreadListings: @Sendable () -> Void
        /// Asks whether there may be another subscription.
        let maySubscribe: @Sendable () -> Bool
        /// Whether the agent goes on.
        let goesOn: @Sendable () -> Bool
        /// Ends the agent.
        let endAgent: @Sendable () -> Void
    }

    /// The process at the other end.
    let process: Int32
    let socket: UnixSocket
    let context: Context
    private let state: Monitor<State>

    private struct State {
        var activity: Activity
        /// What is being read for the client, and how often that had been locked before.
        var reading: (vault: BlockingFileVault, locks: Int)?
        /// Whether that was locked meanwhile.
        var isRevoked = false
        /// The changes that are told, of what, and how often that had been locked when they were last looked through.
        var told: (changes: TokenChanges, use: VaultUse, locks: Int)?
        /// Whether one of them is being sent.
        var isTelling = false
        /// Whether it was locked since that was begun.
        var isTellingRevoked = false
        /// Whether a listing is answered.
        var isListing = false
        /// Whether more is sent than the kernel takes at once.
        var isLong = false
        /// How often something was sent, to its end.
        var sendings: UInt64 = 0

        var isSending: Bool { if case .sending = activity { true } else { false } }

        var isReadingRevoked: Bool {
            reading.map { isRevoked || $0.vault.lockCount != $0.locks } ?? false
        }

        /// Looks at what is told after a lock: what was before it is told no more. The changes to forget, if it was locked.
        mutating func takeLocked() -> TokenChanges? {
            guard let told, told.use.vault.lockCount != told.locks else { return nil }
            self.told?.locks = told.use.vault.lockCount
            isTellingRevoked = isTelling
            return told.changes
        }
    }

    init(_ socket: UnixSocket, from process: Int32, _ context: Context) {
        self.process = process
        self.socket = socket
        self.context = context
        state = Monitor(State(activity: .idle(since: .now)))
    }

    var current: Activity { state.withLock { $0.activity } }

    /// What the thread would find if it looked now.
    var arrival: UnixSocket.Arrival { socket.arrival }

    /// Ends the connection unless a request is being answered: false then. What the client asked for and was not begun it
    /// is told. A client that has not read its answer for `sendingFor` gets no more of it.
    func endUnlessWorking(sendingFor limit: Duration? = nil) -> Bool {
        let before = state.withLock { state -> Activity in
            switch state.activity {
            case .working: break
            case .sending(let since) where limit.map { since.duration(to: .now) < $0 } ?? true: break
            default:
                defer { state.activity = .ended }
                return state.activity
            }
            return .working
        }
        switch before {
        case .working: return false
        // Nobody else writes: the thread begins nothing any more.
        case .idle, .receiving, .waiting: Self.sayGoodbye(to: socket)
        case .sending, .subscribed, .ended: break
        }
        socket.end()
        if case .waiting = before { context.handler.vaults.lookAtTurns() }
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
        state.withLock { $0.activity = .ended }
        socket.end()
    }

    /// Notes that changes of a vault are told from now on, which had been locked as often as `locks` when the first of them may
    /// have come. The vault is in `use` as long as that.
    func begin(telling changes: TokenChanges, of use: VaultUse, since locks: Int) {
        state.withLock { $0.told = (changes, use, locks) }
    }

    /// Ends the subscription's use of the vault, if there is one.
    func endUse() {
        let told = state.withLock { state in
            defer { state.told = nil }
            return state.told
        }
        withExtendedLifetime(told) {}
    }

    /// How often what is told of had been locked, as far as its changes were looked through.
    var toldLocks: Int { state.withLock { $0.told?.locks ?? 0 } }

    /// Notes that a change is being told that was waited for since `locks`. False when it may be one from before a lock.
    func beginTelling(since locks: Int) -> Bool {
        let (isNew, changes) = state.withLock { state -> (Bool, TokenChanges?) in
            let changes = state.takeLocked()
            guard changes == nil, let told = state.told, told.locks == locks else { return (false, changes) }
            (state.isTelling, state.isTellingRevoked) = (true, false)
            return (true, nil)
        }
        changes?.forget()
        return isNew
    }

    func endTelling() { state.announce { $0.isTelling = false } }

    /// What is on its way to a client that it may not get any more.
    struct Remainder {
        fileprivate let connection: ClientConnection
        fileprivate let sendings: UInt64

        /// Ends the connection unless all of it has gone out by `deadline`.
        func finish(by deadline: Deadline) {
            let isOut: Void? = connection.state.wait(atMost: deadline.remaining) { state in
                if case .ended = state.activity { return () }
                return state.sendings == sendings && (state.isTelling || state.isSending) ? nil : ()
            }
            if isOut == nil { connection.end() }
        }
    }

    /// Has the connection tell nothing more of what was read of one of `vaults`, which were locked, or, without them, of one
    /// that has locked by itself since. A long answer ends with the connection; of a short one that is being sent the rest is
    /// what is given.
    func revoke(_ vaults: [BlockingFileVault]? = nil) -> Remainder? {
        let (changes, isLong, remainder) = state.withLock { state -> (TokenChanges?, Bool, Remainder?) in
            let changes = state.takeLocked()
            // Another who locks may have been here first, and waits as well.
            var isUnderWay = state.isTelling && state.isTellingRevoked
            if let vaults, let reading = state.reading, vaults.contains(where: { $0 === reading.vault }) {
                state.isRevoked = true
            }
            var isLong = false
            if state.isSending, state.isReadingRevoked {
                isUnderWay = true
                isLong = state.isLong
            }
            return (changes, isLong, isUnderWay ? Remainder(connection: self, sendings: state.sendings) : nil)
        }
        changes?.forget()
        guard isLong else { return remainder }
        end()
        return nil
    }

    /// Ends the connection if its client does not read the listing that it asked for. Whether it was so.
    func endUnreadListing() {
        let isUnread = state.withLock { state in
            guard state.isListing, case .sending(let since) = state.activity else { return false }
            return since.duration(to: .now) > context.limits.listingTime
        }
        if isUnread { end() }
    }

    /// Whether its client is gone, and does not wait for what it has asked for.
    var isAbandoned: Bool { socket.isPeerGone }

    /// Takes on another activity; false when somebody has ended the connection.
    func become(_ next: (ContinuousClock.Instant) -> Activity) -> Bool {
        state.withLock { state in
            if case .ended = state.activity { return false }
            state.activity = next(.now)
            return true
        }
    }

    /// Sends what was written. Throws `ECONNRESET` when what it tells of was locked meanwhile.
    func send(_ outgoing: WipedBuffer) throws(SystemFailure) {
        let before = state.withLock { state -> Activity? in
            // Locked is locked: what was read before is not told after.
            if state.isReadingRevoked { return nil }
            defer { if case .working = state.activity { state.activity = .sending(since: .now) } }
            state.isLong = outgoing.count > 64 << 10
            return state.activity
        }
        guard let before else { throw SystemFailure(.connectionReset, "send") }
        defer {
            state.announce { state in
                state.sendings += 1
                if case .working = before, case .sending = state.activity { state.activity = .working }
            }
        }
        try outgoing.send(to: socket, until: Deadline(after: context.limits.answerTime))
    }

    /// Notes what is about to be read for the client, so that none of it goes out when it is locked or let go of.
    func begin(reading request: AgentRequest, of vault: BlockingFileVault) {
        switch request.operation {
        case .secret, .item, .metadata, .list, .history: break
        default: return
        }
        let locks = vault.lockCount
        state.withLock { state in
            state.reading = (vault, locks)
            state.isRevoked = false
            switch request.operation {
            case .list, .history: state.isListing = true
            default: break
            }
        }
    }

    /// Whether what is read was locked since it was begun.
    var isReadingRevoked: Bool { state.withLock { $0.isReadingRevoked } }

    func endReading() {
        state.withLock { state in
            state.reading = nil
            state.isRevoked = false
            state.isListing = false
        }
    }
}
