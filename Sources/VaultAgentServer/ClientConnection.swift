internal import SystemPackage
internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

/// One client of the agent. A separate thread serves its requests one after the other.
final class ClientConnection: Sendable {
    /// The activity of the connection, and its start.
    enum Activity {
        /// The client has no open request.
        case idle(since: ContinuousClock.Instant)
        /// A request has begun to arrive.
        case receiving(since: ContinuousClock.Instant)
        /// A request waits for its turn; nothing of it was begun.
        case waiting(since: ContinuousClock.Instant)
        /// A request is being answered.
        case working
        /// An answer is being sent.
        case sending(since: ContinuousClock.Instant)
        /// The client is subscribed to changes.
        case subscribed(since: ContinuousClock.Instant)
        /// The connection has ended.
        case ended
    }

    /// The environment of the connection.
    struct Context: Sendable {
        let handler: RequestHandler
        let limits: AgentLimits
        /// The memory budget for commits.
        let budget: CommitBudget
        /// Whether the connection is one of the last, which only serve lock requests.
        var isForLocking = false
        /// Ends the connections that delay a listing, because their clients do not read theirs.
        let endUnreadListings: @Sendable () -> Void
        /// Returns whether another subscription is possible.
        let maySubscribe: @Sendable () -> Bool
        /// Returns whether the agent keeps running.
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
        /// The vault that is being read for the client, and its lock count before the read.
        var reading: (vault: BlockingFileVault, locks: Int)?
        /// Whether that vault was locked during the read.
        var isRevoked = false
        /// The changes that are sent, the use of their vault, and its lock count when they were last checked.
        var told: (changes: TokenChanges, use: VaultUse, locks: Int)?
        /// Whether a change is being sent.
        var isTelling = false
        /// Whether the vault was locked since that sending began.
        var isTellingRevoked = false
        /// Whether a listing is being answered.
        var isListing = false
        /// Whether the answer is longer than the kernel accepts at once.
        var isLong = false
        /// The number of completed sendings.
        var sendings: UInt64 = 0

        var isSending: Bool { if case .sending = activity { true } else { false } }

        var isReadingRevoked: Bool {
            reading.map { isRevoked || $0.vault.lockCount != $0.locks } ?? false
        }

        /// Accounts for a lock of the subscribed vault: changes from before it are not sent. Returns the
        /// changes to forget, if the vault was locked.
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

    /// The data that the thread would find if it read now.
    var arrival: UnixSocket.Arrival { socket.arrival }

    /// Ends the connection unless a request is being answered; returns false then. The client learns that its
    /// open request was not begun. If the client has not read its answer for `sendingFor`, the rest is
    /// dropped.
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
        // No other thread writes, since the serving thread begins nothing more.
        case .idle, .receiving, .waiting: Self.sayGoodbye(to: socket)
        case .sending, .subscribed, .ended: break
        }
        socket.end()
        if case .waiting = before { context.handler.vaults.lookAtTurns() }
        return true
    }

    /// Tells a client that its open request was not begun.
    static func sayGoodbye(to socket: UnixSocket) {
        let buffer = WipedBuffer(capacity: 64)
        var writer = WireWriter(buffer)
        writer.begin(.goodbye, id: 0)
        _ = writer.end()
        try? buffer.send(to: socket, until: Deadline(after: .zero))
    }

    /// Ends the connection in any activity.
    func end() {
        state.withLock { $0.activity = .ended }
        socket.end()
    }

    /// Registers the changes of a vault to be sent from now on. `locks` is the vault's lock count when the
    /// first of them may have come. The vault stays in `use` for that time.
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

    /// The lock count of the subscribed vault when its changes were last checked.
    var toldLocks: Int { state.withLock { $0.told?.locks ?? 0 } }

    /// Notes that a change is being sent that was waited for since `locks`. Returns false when the change may
    /// be older than a lock.
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

    /// Data in transit that the client is no longer allowed to get.
    struct Remainder {
        fileprivate let connection: ClientConnection
        fileprivate let sendings: UInt64

        /// Ends the connection unless all of the data was sent by `deadline`.
        func finish(by deadline: Deadline) {
            let isOut: Void? = connection.state.wait(atMost: deadline.remaining) { state in
                if case .ended = state.activity { return () }
                return state.sendings == sendings && (state.isTelling || state.isSending) ? nil : ()
            }
            if isOut == nil { connection.end() }
        }
    }

    /// Stops the sending of data that was read from `vaults`, which were locked; without `vaults`, from a
    /// vault that has locked automatically. Ends the connection during a long answer. During a short answer,
    /// returns the rest that is being sent.
    func revoke(_ vaults: [BlockingFileVault]? = nil) -> Remainder? {
        let (changes, isLong, remainder) = state.withLock { state -> (TokenChanges?, Bool, Remainder?) in
            let changes = state.takeLocked()
            // Another lock may have come first, and waits as well.
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

    /// Ends the connection if its client does not read its listing.
    func endUnreadListing() {
        let isUnread = state.withLock { state in
            guard state.isListing, case .sending(let since) = state.activity else { return false }
            return since.duration(to: .now) > context.limits.listingTime
        }
        if isUnread { end() }
    }

    /// Whether the client is gone, and does not wait for its answer.
    var isAbandoned: Bool { socket.isPeerGone }

    /// Sets another activity; returns false when the connection was ended.
    func become(_ next: (ContinuousClock.Instant) -> Activity) -> Bool {
        state.withLock { state in
            if case .ended = state.activity { return false }
            state.activity = next(.now)
            return true
        }
    }

    /// Sends the answer. Throws `ECONNRESET` when the vault was locked meanwhile.
    func send(_ outgoing: WipedBuffer) throws(SystemFailure) {
        let before = state.withLock { state -> Activity? in
            // Data that was read before a lock is not sent after it.
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

    /// Notes the vault to be read for the client, so that none of its data is sent after it is locked or
    /// released.
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

    /// Whether the vault was locked since the read began.
    var isReadingRevoked: Bool { state.withLock { $0.isReadingRevoked } }

    func endReading() {
        state.withLock { state in
            state.reading = nil
            state.isRevoked = false
            state.isListing = false
        }
    }
}
