internal import Synchronization
internal import TokenVault
internal import TokenVaultDesktop
internal import TokenVaultPlatform

/// A connection to the system bus, what logind said on it, and what keeps the machine from sleeping too early. One
/// thread uses it.
final class LoginLink {
    private let connection: BusConnection
    private let configuration: SessionWatch.Configuration
    private let event: WakeEvent
    private let hangUp: HangUpWatch?
    private let lock: () -> Void
    private let signals: Signals

    /// The session that the process runs in, if it is in one.
    private var own: String?
    /// Sessions that are known to be other people's.
    private var others: Set<String> = []
    /// The descriptor that delays sleep. While the descriptor is open, the machine does not sleep, for as
    /// long as logind allows a delay.
    private var inhibitor: PassedDescriptor?

    /// What keeps it from locking with the session or before sleep; `nil` when nothing does.
    private(set) var obstacle: String?

    /// Whether logind did not answer something, and has to be asked again.
    private(set) var isUnanswered = false

    /// Signals that came and were not looked at yet.
    private final class Signals: Sendable {
        let waiting = Mutex<[BusSignal]>([])
    }

    /// Connects and asks; a signal that comes, and ``WakeEvent/wake()``, end ``wait()``. Throws `unavailable`, `timedOut`.
    init(
        _ library: SecretLibrary, _ configuration: SessionWatch.Configuration, _ event: WakeEvent,
        lock: @escaping () -> Void, cancellable: BusCancellable
    ) throws(TokenStorageError) {
        self.configuration = configuration
        self.event = event
        self.lock = lock
        let signals = Signals()
        self.signals = signals
        do throws(TokenStorageError) {
            connection = try BusConnection(
                library, configuration.address.map { .address($0) } ?? .system, for: .login,
                cancellable: cancellable)
        } catch {
            var error = error
            error.reason = .noSystemBus(error.reason)
            throw error
        }
        hangUp = connection.hangUpWatch()
        connection.inbox.listen { signal in
            guard
                signal.interface == LoginName.manager || signal.interface == LoginName.session
                    || signal.member == "NameOwnerChanged"
            else { return }
            signals.waiting.withLock { $0.append(signal) }
            event.wake()
        }
        let make = VariantFactory(library: library)
        for rule in [
            "type='signal',sender='\(LoginName.service)',interface='\(LoginName.manager)',path='\(LoginName.path)'",
            "type='signal',sender='\(LoginName.service)',interface='\(LoginName.session)',member='Lock'",
            "type='signal',sender='\(BusName.bus)',member='NameOwnerChanged',arg0='\(LoginName.service)'",
        ] {
            connection.tell(.bus("AddMatch", make.tuple([make.text(rule)])))
        }
        try greet()
    }

    /// Waits for a signal, for the end of the connection or for ``WakeEvent/wake()``, at most for `duration`; `nil`
    /// sets no limit. Waits at most 2 seconds for a bus without a socket. Returns false when the connection has ended.
    func wait(atMost duration: Duration?) -> Bool {
        if let hangUp { return !hangUp.wait(orWake: event, atMost: duration) }
        // A bus without a socket reports no end of the connection, so the connection is checked every 2
        // seconds.
        event.wait(atMost: min(duration ?? .seconds(2), .seconds(2)))
        return !connection.isClosed
    }

    /// Does what the signals ask for that came; whether there were any.
    func takeSignals() -> Bool {
        let arrived = signals.waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        for signal in arrived {
            do throws(TokenStorageError) {
                try take(signal)
            } catch {
                (isUnanswered, obstacle) = (true, error.explanation)
            }
        }
        return !arrived.isEmpty
    }

    /// Asks logind again for everything.
    func askAgain() {
        do throws(TokenStorageError) {
            try begin()
        } catch {
            obstacle = error.explanation
        }
    }

    private func take(_ signal: BusSignal) throws(TokenStorageError) {
        switch (signal.interface, signal.member) {
        case (BusName.bus, "NameOwnerChanged"):
            guard signal.subject == LoginName.service, let values = signal.values, values.count == 3 else {
                return
            }
            inhibitor = nil
            isUnanswered = false
            if values[2].text?.isEmpty ?? true { obstacle = Self.noLogin } else { try begin() }
        case (LoginName.session, "Lock"):
            if isOurs(signal.path) { lock() }
        case (LoginName.manager, "PrepareForSleep"):
            guard let isBefore = signal.values.flatMap({ $0.isOf("(b)") ? $0[0].bool : nil }) else { return }
            if isBefore {
                lock()
                inhibitor = nil
            } else {
                try delaySleep()
            }
        case (LoginName.manager, "SessionNew"): try learnSessions()
        case (LoginName.manager, "SessionRemoved"):
            guard let values = signal.values, values.isOf("(so)") else { return }
            if values[1].text == own {
                // The agent's own session ended. From now on the agent locks with the user's other sessions.
                lock()
                own = nil
            }
            try learnSessions()
        default: break
        }
    }

    /// Whether a session is the one to lock with: one that is not known may be.
    private func isOurs(_ path: String) -> Bool {
        if let own { return path == own }
        return !others.contains(path)
    }

    private static let noLogin = "logind does not run"

    /// Finds logind, if it runs.
    private func greet() throws(TokenStorageError) {
        let make = VariantFactory(library: connection.library)
        let changes = connection.inbox.ownerChanges
        let reply = try ask(.bus("GetNameOwner", make.tuple([make.text(LoginName.service)])))
        guard case .values(let values) = reply, values.isOf("(s)") else {
            obstacle = Self.noLogin
            return
        }
        connection.inbox.note(owner: values[0].text, since: changes)
        try begin()
    }

    /// Asks logind, which is new here, for what has to be known.
    private func begin() throws(TokenStorageError) {
        let make = VariantFactory(library: connection.library)
        let process = make.number(UInt32(configuration.process))
        own = nil
        if case .values(let values) = try ask(.manager("GetSessionByPID", make.tuple([process]))),
            values.isOf("(o)")
        {
            own = values[0].text
        }
        try learnSessions()
        try delaySleep()
        isUnanswered = false
    }

    private func learnSessions() throws(TokenStorageError) {
        guard case .values(let values) = try ask(.manager("ListSessions", nil)), values.isOf("(a(susso))")
        else { return others = [] }
        others = Set(
            values[0].elements.compactMap { session in
                session[1].shortNumber == configuration.user ? nil : session[4].text
            })
    }

    /// Has the machine wait before it sleeps.
    private func delaySleep() throws(TokenStorageError) {
        let make = VariantFactory(library: connection.library)
        let words = ["sleep", "TokenVault", "locks vaults", "delay"].map { make.text($0) }
        switch try ask(.manager("Inhibit", make.tuple(words))) {
        case .descriptor(let descriptor):
            inhibitor = descriptor
            obstacle = nil
        case .error(LoginName.inProgress, _):
            // The machine is about to sleep. logind signals when it is awake again.
            lock()
            obstacle = nil
        case .error(let name, let text):
            obstacle = "the machine may sleep before vaults are locked: \(name): \(text)"
        case .values: obstacle = "the machine may sleep before vaults are locked"
        }
    }

    private func ask(_ method: BusMethod) throws(TokenStorageError) -> BusReply {
        try connection.ask([method], for: BusCall(timeout: configuration.timeout))[0]
    }
}

extension TokenStorageError {
    /// What went wrong on the way to logind.
    var explanation: String { underlying ?? "logind does not answer" }
}

extension BusMethod {
    /// A call of logind.
    fileprivate static func manager(_ name: String, _ body: Variant?) -> BusMethod {
        BusMethod(
            destination: LoginName.service, path: LoginName.path, interface: LoginName.manager, name: name,
            body: body)
    }
}

extension BusService {
    fileprivate static let login = BusService(
        name: LoginName.service, interfaces: [LoginName.manager, LoginName.session])
}

/// The names of logind on the bus.
private enum LoginName {
    static let service = "org.freedesktop.login1"
    static let path = "/org/freedesktop/login1"
    static let manager = "org.freedesktop.login1.Manager"
    static let session = "org.freedesktop.login1.Session"
    /// The error of a call that comes when the machine is on its way to sleep already.
    static let inProgress = "org.freedesktop.login1.OperationInProgress"
}
