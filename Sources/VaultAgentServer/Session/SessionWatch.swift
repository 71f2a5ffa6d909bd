internal import Synchronization
internal import SystemPackage
internal import TokenVault
internal import TokenVaultDesktop
package import TokenVaultPlatform

/// Locks when the user leaves. That is when logind (`org.freedesktop.login1`) says that the session is to lock or has
/// ended. Also locks before the machine sleeps; the machine waits for that.
///
/// It has a thread of its own. A bus that goes away is looked for again; whatever was told meanwhile was missed, so what is
/// open is locked then. Without a bus, or without libsecret through which it is reached, nothing is watched, and
/// ``obstacle`` says so.
package final class SessionWatch: Sendable {
    /// Whose session, on which bus.
    package struct Configuration: Sendable {
        /// The bus's address; `nil` for the system's own (`DBUS_SYSTEM_BUS_ADDRESS`, or where it always is).
        package var address: String?
        /// The process whose session it is. One that belongs to none is every session of `user`'s.
        package var process = ProcessFacts.identifier
        /// The user.
        package var user = ProcessFacts.user
        /// How long to wait before a bus that was not there is looked for again; twice as long each time, a minute at
        /// most.
        package var pause: Duration = .seconds(1)
        /// How long logind may take to answer.
        package var timeout: Duration = .seconds(5)

        package init() {}
    }

    private let watcher: Watcher

    /// Starts to watch. `lock` returns when everything is locked. `tell` gets each new obstacle, and `nil` when there
    /// is none any more. Both are called on the thread.
    package init(
        _ configuration: Configuration = Configuration(),
        tell: @escaping @Sendable (String?) -> Void = { _ in },
        lock: @escaping @Sendable () -> Void
    ) throws(SystemFailure) {
        watcher = Watcher(configuration, try WakeEvent(), tell: tell, lock: lock)
        let thread = WorkerThread(name: "session-watch")
        guard thread.isRunning else { throw SystemFailure(.resourceTemporarilyUnavailable, "pthread_create") }
        thread.run { [watcher] in watcher.run() }
    }

    deinit { watcher.end() }

    /// What keeps it from locking with the session or before sleep; `nil` when nothing does.
    package var obstacle: String? { watcher.facts.withLock { $0.obstacle } }

    /// Waits, `duration` at most, until ``obstacle`` is as `body` wants it: whether it is.
    package func wait(atMost duration: Duration, until body: (String?) -> Bool) -> Bool {
        watcher.facts.wait(atMost: duration) { $0.isKnown && body($0.obstacle) ? () : nil } != nil
    }

    /// Waits, `duration` at most, until it is known whether there is something to watch.
    package func waitUntilKnown(atMost duration: Duration) { _ = wait(atMost: duration) { _ in true } }
}

/// What the thread has.
private final class Watcher: Sendable {
    struct Facts {
        var obstacle: String? = "the system bus does not answer"
        var isKnown = false
    }

    private struct State {
        var hasEnded = false
        var connecting: BusCancellable?
    }

    let facts = Monitor(Facts())
    private let configuration: SessionWatch.Configuration
    private let event: WakeEvent
    private let tell: @Sendable (String?) -> Void
    private let lock: @Sendable () -> Void
    private let state = Mutex(State())

    init(
        _ configuration: SessionWatch.Configuration, _ event: WakeEvent,
        tell: @escaping @Sendable (String?) -> Void, lock: @escaping @Sendable () -> Void
    ) {
        self.configuration = configuration
        self.event = event
        self.tell = tell
        self.lock = lock
    }

    private var hasEnded: Bool { state.withLock { $0.hasEnded } }

    func end() {
        let connecting = state.withLock { state in
            state.hasEnded = true
            return state.connecting
        }
        connecting?.cancel()
        event.wake()
    }

    func run() {
        let library: SecretLibrary
        do throws(TokenStorageError) { library = try .load() } catch { return note(error.explanation) }
        var pause = configuration.pause
        while !hasEnded {
            do throws(TokenStorageError) {
                try follow(library)
                // Signals that logind sent without a connection are lost, so the vaults are locked.
                if !hasEnded { lock() }
                note("the connection to the system bus was lost")
                pause = configuration.pause
            } catch {
                note(error.explanation)
            }
            if !hasEnded { event.wait(atMost: pause) }
            pause = min(pause * 2, .seconds(60))
        }
    }

    /// Does as logind says until the connection is lost. Throws when there was none.
    private func follow(_ library: SecretLibrary) throws(TokenStorageError) {
        let cancellable = BusCancellable(library)
        state.withLock { $0.connecting = cancellable }
        defer { state.withLock { $0.connecting = nil } }
        if hasEnded { return }
        let link = try LoginLink(library, configuration, event, lock: lock, cancellable: cancellable)
        note(link.obstacle)
        var pause = configuration.pause
        while link.wait(atMost: link.isUnanswered ? pause : nil), !hasEnded {
            if !link.takeSignals(), link.isUnanswered {
                link.askAgain()
                pause = min(pause * 2, .seconds(60))
            }
            if !link.isUnanswered { pause = configuration.pause }
            note(link.obstacle)
        }
    }

    private func note(_ obstacle: String?) {
        let obstacle = obstacle.map { String($0.prefix(200)) }
        let isNew = facts.withLock { !$0.isKnown || $0.obstacle != obstacle }
        // Reports the obstacle first, so that a caller that waits for the facts finds it reported.
        if isNew, !hasEnded { tell(obstacle) }
        facts.announce { $0 = Facts(obstacle: obstacle, isKnown: true) }
    }
}
