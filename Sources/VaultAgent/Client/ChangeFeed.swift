internal import TokenVault
internal import TokenVaultPlatform

/// One subscription: a connection on which the agent reports changes, and a thread that passes them on.
final class ChangeFeed: Sendable {
    private struct State {
        var connection: AgentConnection?
        var isStopped = false
    }

    private let place: AgentEndpoint
    private let vault: VaultReference
    private let service: String
    private let timeout: Duration
    private let hub = ChangeHub()
    private let state = Monitor(State())

    init(place: AgentEndpoint, vault: VaultReference, service: String, timeout: Duration) {
        self.place = place
        self.vault = vault
        self.service = service
        self.timeout = timeout
    }

    /// Subscribes, and returns the changes from now on. When the agent is unavailable or ends, the reader
    /// gets a request to list again once it is back. `whenOver` is called when the last reader is gone.
    func start(whenOver: @escaping @Sendable () -> Void) -> TokenChanges {
        let changes = hub.subscribe(service: service) { [self] in
            stop()
            whenOver()
        }
        guard !isStopped else { return changes }
        let isSubscribed = subscribe()
        let thread = WorkerThread(name: "agent-changes")
        guard thread.isRunning else {
            stop()
            return changes
        }
        thread.run { [self] in run(isSubscribed: isSubscribed) }
        return changes
    }

    /// Ends the sequence and the thread.
    func stop() {
        let connection = state.announce { state in
            state.isStopped = true
            defer { state.connection = nil }
            return state.connection
        }
        connection?.end()
        hub.end()
    }

    private var isStopped: Bool { state.withLock { $0.isStopped } }

    private func run(isSubscribed: Bool) {
        var isSubscribed = isSubscribed
        var pause: Duration = .milliseconds(20)
        while !isStopped {
            if isSubscribed {
                pause = .milliseconds(20)
                passOn()
                guard !isStopped else { return }
                // Changes from here on are not reported.
                hub.publish(service: service, .overflowed)
            }
            if state.wait(atMost: pause, { $0.isStopped ? () : nil }) != nil { return }
            pause = min(pause * 2, .seconds(1))
            isSubscribed = subscribe()
            if isSubscribed { hub.publish(service: service, .overflowed) }
        }
    }

    private func passOn() {
        guard let connection = state.withLock({ $0.connection }) else { return }
        while let event = connection.nextEvent() { hub.publish(service: service, event) }
    }

    private func subscribe() -> Bool {
        do throws(AgentConnection.Failure) {
            let connection = try AgentConnection(to: place, within: timeout)
            try connection.perform(.subscribe(service: service), on: vault, within: timeout) {
                (_, _) throws(WireError) in
            }
            return state.withLock { state in
                guard !state.isStopped else { return false }
                state.connection = connection
                return true
            }
        } catch {
            return false
        }
    }
}
