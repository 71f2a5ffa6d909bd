internal import Synchronization
internal import SystemPackage
package import TokenVault
package import TokenVaultPlatform
internal import VaultAgent

/// The agent: takes clients as they come and serves each on a thread of its own, a bounded number of them.
package final class AgentServer: Sendable {
    /// The vaults it holds.
    package let vaults: HeldVaults
    private let limits: AgentLimits
    private let makeThread: @Sendable () -> WorkerThread
    private let waker: WakeEvent
    private let connections = Monitor<[UInt64: ClientConnection]>([:])
    private let hasEnded = Mutex(false)
    private let budget: CommitBudget
    private let session = Mutex<SessionWatch?>(nil)
    /// For who comes to lock when the system gives no more threads, and the connection that is served on it.
    private let spareThread = WorkerThread(name: "agent-spare")
    private let onSpareThread = Mutex<ClientConnection?>(nil)

    /// An agent that holds no vault yet. Throws what the system failed with, as `EMFILE`.
    ///
    /// `makeThread` is what the threads of its clients come from; a thread that does not run stands for a system that has none.
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

    /// Why the agent ended.
    package enum End: Sendable {
        /// It was told to.
        case asked
        /// Its socket or the directory of that was removed or replaced: nobody could have told it to lock.
        case displaced
        /// It held nothing, and no client came, for ``AgentLimits/unusedTime``.
        case unused
    }

    /// Serves the clients of `listening` until ``end()``, or a signal of `signals` other than `SIGHUP`, which locks every
    /// vault, or until no client can come any more, or none comes for a while to an agent that holds nothing. Then `stopping` is called, requests that are under way are answered, and
    /// every key is wiped.
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
            // Without keys to lock and clients to end there is nothing to look at.
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
                // Who waits goes on waiting until there is room.
                if !makeRoom() { _ = backOff.wait(until: Deadline(after: .seconds(1))) }
                continue
            }
            if let signal = signals?.next() {
                if signal == SignalForwarder.hangUp { vaults.lockAll() } else { end() }
                continue
            }
            if watch?.hasNews() ?? true || nextLook <= .now {
                nextLook = .now.advanced(by: limits.lookTime)
                // What is above the directory may be moved or mounted over, and nobody tells.
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

    /// Locks every vault from now on when the person's session does, and before the machine sleeps. Returns when it is
    /// known whether that can be, or within a second. `tell` is told why it cannot, whenever that changes. Throws what the
    /// system failed with.
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

    /// How many clients there are.
    package var clients: Int { connections.withLock { $0.count } }

    /// How many of them are at what `isSuch` takes.
    func clients(where isSuch: (ClientConnection.Activity) -> Bool) -> Int {
        connections.withLock { Array($0.values) }.count { isSuch($0.current) }
    }

    /// Waits until there are `count` clients, `timeout` at most; whether there are.
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
        // All are at work, for as long as that takes, or there is no thread: who comes to lock is heard all the same.
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

    /// The spare thread, once it is done with whom it served before: that one has locked by now, or has not asked for it.
    /// `nil` when there is none, or that one is being answered.
    private func takeSpareThread(for connection: ClientConnection) -> WorkerThread? {
        onSpareThread.withLock { served in
            guard spareThread.isRunning, served?.endUnlessWorking(sendingFor: .zero) ?? true else {
                return nil
            }
            served = connection
            return spareThread
        }
    }

    /// Ends the connection that is the least loss: see ``EvictionOrder``. False when all are at work.
    private func makeRoom() -> Bool {
        for (number, connection) in EvictionOrder.order(connections.withLock { $0 })
        where connection.endUnlessWorking(sendingFor: .zero) {
            // Its thread is about to end, and counts no more.
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

    /// Has nothing told any more of what was read of `vaults`, which were locked, or, without them, of those that locked by
    /// themselves. Returns when nothing of it is on its way any more: a short answer has a moment to get there.
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
            // Who came too late hears that nothing was begun.
            while let socket = listening.listener.acceptNow() { ClientConnection.sayGoodbye(to: socket) }
        }
        // Those at work end by themselves once they have answered; who does not read the answer has a second for it.
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
    /// Whether descriptors or memory ran out, which may be there in a moment.
    fileprivate var isShortage: Bool {
        switch errno {
        case .tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory, .noBufferSpace: true
        default: false
        }
    }
}
