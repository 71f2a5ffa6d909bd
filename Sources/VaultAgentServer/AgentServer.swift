internal import Synchronization
internal import SystemPackage
internal import TokenVault
package import TokenVaultPlatform
internal import VaultAgent

/// The agent: accepts clients, up to a limit, and serves each on a separate thread.
package final class AgentServer: Sendable {
    /// The vaults that the agent holds.
    package let vaults: HeldVaults
    private let limits: AgentLimits
    private let makeThread: @Sendable () -> WorkerThread
    private let waker: WakeEvent
    private let connections = Monitor<[UInt64: ClientConnection]>([:])
    private let hasEnded = Mutex(false)
    private let budget: CommitBudget
    private let session = Mutex<SessionWatch?>(nil)
    /// A thread for a client that comes to lock when the system has no more threads; below, the connection
    /// that it serves.
    private let spareThread = WorkerThread(name: "agent-spare")
    private let onSpareThread = Mutex<ClientConnection?>(nil)

    /// Creates an agent that holds no vault yet. Throws the system's failure, such as `EMFILE`.
    ///
    /// `makeThread` creates the threads for clients; a thread that does not run means that the system has
    /// none left.
    package init(
        limits: AgentLimits = AgentLimits(),
        makeThread: @escaping @Sendable () -> WorkerThread = { WorkerThread(name: "agent-client") }
    ) throws(SystemFailure) {
        self.limits = limits
        self.makeThread = makeThread
        vaults = HeldVaults(limits: limits)
        budget = CommitBudget(limits.commitLength, share: limits.commitShare)
        waker = try WakeEvent()
        vaults.tellOfLocks { [weak self] vaults in
            self?.revoke(vaults)
        }
    }

    /// The reason that the agent ended.
    package enum End: Sendable {
        /// A client, a signal or the program ended the agent.
        case asked
        /// The agent's socket or the socket's directory was removed or replaced, so that clients could not
        /// lock the vaults.
        case displaced
        /// The agent held no vault, and no client came, for ``AgentLimits/unusedTime``.
        case unused
    }

    /// Serves the clients of `listening` until ``end()``, or a signal of `signals` other than `SIGHUP`;
    /// `SIGHUP` locks every vault. Also ends when clients can no longer reach the agent, or when it is unused
    /// for ``AgentLimits/unusedTime``. Then calls `stopping`, answers the running requests, and wipes every
    /// key.
    @discardableResult
    package func run(
        _ listening: AgentListening, signals: SignalForwarder? = nil, stopping: () -> Void = {}
    ) throws(SystemFailure) -> End {
        defer {
            stopping()
            finish(listening)
        }
        let listener = listening.listener
        var number: UInt64 = 0
        var backOff = BackOff()
        var watch: SocketDirectoryWatch?
        var nextLook = ContinuousClock.now
        var unusedEnd: Deadline?
        while !hasEnded.withLock({ $0 }) {
            if watch == nil { watch = listening.watch() }
            // Without keys to lock and clients to end, periodic checks are not needed.
            let isUnused = clients == 0 && !vaults.isAnyOpen
            unusedEnd = isUnused ? unusedEnd ?? limits.unusedTime.map { Deadline(after: $0) } : nil
            var socket: UnixSocket?
            do throws(SystemFailure) {
                socket = try listener.accept(
                    orSignal: signals, orWake: waker, orIn: watch,
                    atMost: isUnused ? unusedEnd?.remaining : limits.lookTime)
                backOff = BackOff()
            } catch {
                guard error.isShortage else { throw error }
                // A client that waits keeps waiting until there is room.
                if !makeRoom() { _ = backOff.wait(until: Deadline(after: .seconds(1))) }
                continue
            }
            if let signal = signals?.next() {
                if signal == SignalForwarder.hangUp { vaults.lockAll() } else { end() }
                continue
            }
            if watch?.hasNews() ?? true || nextLook <= .now {
                nextLook = .now.advanced(by: limits.lookTime)
                // A directory above may be moved or mounted over without any notification.
                guard listening.isInPlace else {
                    vaults.lockAll()
                    return .displaced
                }
                revoke()
                vaults.closeUnused()
            }
            if socket == nil, let end = unusedEnd, end.hasPassed {
                socket = listening.withdraw()
                if socket == nil { return .unused }
            }
            guard let socket else { continue }
            unusedEnd = nil
            number += 1
            take(socket, number)
        }
        return .asked
    }

    /// Locks every vault from now on when the login session locks, and before the machine sleeps. Returns
    /// when it is known whether that works, or within a second. Calls `tell` with the reason that it does not
    /// work, whenever that changes. Throws the system's failure.
    package func watchSession(
        _ configuration: SessionWatch.Configuration = SessionWatch.Configuration(),
        tell: @escaping @Sendable (String?) -> Void = { _ in }
    ) throws(SystemFailure) {
        let watch = try SessionWatch(
            configuration,
            tell: { [vaults] obstacle in
                vaults.note(sessionObstacle: obstacle)
                tell(obstacle)
            },
            lock: { [vaults] in vaults.lockAll() })
        watch.waitUntilKnown(atMost: .seconds(1))
        session.withLock { $0 = watch }
    }

    /// Ends the agent: ``run(_:signals:stopping:)`` returns.
    package func end() {
        hasEnded.withLock { $0 = true }
        waker.wake()
    }

    /// The number of clients.
    package var clients: Int { connections.withLock { $0.count } }

    /// Returns the number of clients with an activity that `isSuch` accepts.
    func clients(where isSuch: (ClientConnection.Activity) -> Bool) -> Int {
        connections.withLock { Array($0.values) }.count { isSuch($0.current) }
    }

    /// Waits until there are `count` clients, for `timeout` at most. Returns whether there are.
    package func waitForClients(_ count: Int, atMost timeout: Duration) -> Bool {
        connections.wait(atMost: timeout) { $0.count == count ? () : nil } != nil
    }

    private func take(_ socket: UnixSocket, _ number: UInt64) {
        guard let peer = try? socket.peer(), peer.user == ProcessFacts.user else { return }
        while connections.withLock({ $0.count }) >= limits.connections, makeRoom() {}
        let count = connections.withLock { $0.count }
        guard count < limits.connections + limits.lockingConnections else {
            return ClientConnection.sayGoodbye(to: socket)
        }
        let own = makeThread()
        // All connections are busy, or there is no thread. Even then, the agent serves a client that wants to
        // lock.
        let isForLocking = count >= limits.connections || !own.isRunning
        let context = ClientConnection.Context(
            handler: RequestHandler(vaults: vaults), limits: limits, budget: budget,
            isForLocking: isForLocking,
            endUnreadListings: { [weak self] in self?.endUnreadListings() },
            maySubscribe: { [weak self] in self?.makeRoomForSubscription() ?? false },
            goesOn: { [weak self] in self.map { !$0.hasEnded.withLock { $0 } } ?? false },
            endAgent: { [weak self] in self?.end() })
        let connection = ClientConnection(socket, from: peer.process, context)
        guard let thread = own.isRunning ? own : takeSpareThread(for: connection) else {
            return ClientConnection.sayGoodbye(to: socket)
        }
        connections.announce { $0[number] = connection }
        thread.run { [weak self] in
            connection.serve()
            _ = self?.connections.announce { $0.removeValue(forKey: number) }
        }
    }

    /// Takes over the spare thread once its previous client is served: that client has locked by now, or has
    /// not asked for it. Returns `nil` when there is no such thread, or its client is being answered.
    private func takeSpareThread(for connection: ClientConnection) -> WorkerThread? {
        onSpareThread.withLock { served in
            guard spareThread.isRunning, served?.endUnlessWorking(sendingFor: .zero) ?? true else {
                return nil
            }
            served = connection
            return spareThread
        }
    }

    /// Ends the first connection in ``EvictionOrder``. Returns false when all are busy.
    private func makeRoom() -> Bool {
        for (number, connection) in EvictionOrder.order(connections.withLock { $0 })
        where connection.endUnlessWorking(sendingFor: .zero) {
            // The connection's thread is about to end, and no longer counts.
            connections.announce { $0[number] = nil }
            return true
        }
        return false
    }

    private func makeRoomForSubscription() -> Bool {
        let subscriptions = connections.withLock { $0 }.filter {
            if case .subscribed = $0.value.current { true } else { false }
        }
        guard subscriptions.count >= limits.subscriptions else { return true }
        return EvictionOrder.order(subscriptions).first?.1.endUnlessWorking() ?? false
    }

    /// Stops all answers with data of `vaults`, which were locked; without `vaults`, of those that locked
    /// automatically. Returns when no such data is in transit: a short answer has a moment to arrive.
    private func revoke(_ vaults: [BlockingFileVault]? = nil) {
        let remainders = connections.withLock { Array($0.values) }.compactMap { $0.revoke(vaults) }
        let end = Deadline(after: .milliseconds(5))
        for remainder in remainders { remainder.finish(by: end) }
    }

    private func endUnreadListings() {
        for connection in connections.withLock({ Array($0.values) }) { connection.endUnreadListing() }
    }

    private func finish(_ listening: AgentListening) {
        hasEnded.withLock { $0 = true }
        session.withLock { $0 = nil }
        if listening.remove() {
            // Tells late clients that their requests were not begun.
            while let socket = listening.listener.acceptNow() { ClientConnection.sayGoodbye(to: socket) }
        }
        // Busy connections end after their answer. A client that does not read its answer gets one second
        // more.
        let end = Deadline(after: limits.endTime)
        repeat {
            for connection in connections.withLock({ Array($0.values) }) {
                _ = connection.endUnlessWorking(sendingFor: .seconds(1))
            }
        } while connections.wait(atMost: min(end.remaining, .seconds(1)), { $0.isEmpty ? () : nil }) == nil
            && !end.hasPassed
        for connection in connections.withLock({ Array($0.values) }) { connection.end() }
        vaults.closeAll()
    }
}

extension SystemFailure {
    /// Whether the system ran out of descriptors or memory, which may become available again.
    fileprivate var isShortage: Bool {
        switch errno {
        case .tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory, .noBufferSpace: true
        default: false
        }
    }
}
