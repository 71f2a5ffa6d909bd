internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultPlatform

/// The user's own keyring, through the Secret Service of the desktop (gnome-keyring, KWallet, KeePassXC). One
/// connection and one encrypted session are shared by the storages of several services. Items are looked for
/// in every keyring of the user.
///
/// ```swift
/// let service = SecretService(configuration: SecretServiceConfiguration())
/// let storage = service.storage(service: "com.example.app")
/// try await storage.store(token: "eyJ…", for: "access_token")
/// ```
///
/// Nothing is looked for before the first call; libsecret is loaded then. When the bus, the service or the
/// keyring went away and came back, the next call finds it again. While it is missing, calls throw
/// `unavailable`. A lost bus never ends the process.
public final class SecretService: Sendable {
    private struct State {
        var link: KeyringLink?
        var isClosed = false
        var wasConnected = false
    }

    let configuration: SecretServiceConfiguration
    let promptObserver: (@Sendable (_ isShown: Bool) -> Void)?
    let hub = ChangeHub()
    let memory = KeyringMemory()
    let observer = KeyringObserver()
    let publishing = Mutex(())
    let writers = TurnQueue()
    // A prompt that stays open for a minute occupies a thread, so that other calls need more.
    let threads = WorkerPool(name: "secret-service", maximum: 64)
    private let state = Mutex(State())
    private let connecting = TurnQueue()

    /// Creates access to the keyring that `configuration` names. Does not connect yet, and never fails.
    ///
    /// `promptObserver` is called with true before each prompt and with false after it, answered or not. The
    /// user may have to look for the prompt's window. It is called on the thread that waits.
    public init(
        configuration: SecretServiceConfiguration = SecretServiceConfiguration(),
        promptObserver: (@Sendable (_ isShown: Bool) -> Void)? = nil
    ) {
        self.configuration = configuration
        self.promptObserver = promptObserver
    }

    deinit { hub.end() }

    /// Returns the storage of `service` in this keyring. With an unusable service every call throws
    /// `invalidArgument`.
    public func storage(service: String) -> SecretServiceTokenStorage {
        SecretServiceTokenStorage(self, service: service)
    }

    /// Closes the connection with its session, and ends every sequence of changes. Later calls throw
    /// `closed`; calls under way end as usual.
    public func close() {
        state.withLock { state in
            state.isClosed = true
            state.link = nil
        }
        hub.end()
    }

    /// Returns the link, and makes it when there is none. Throws `closed`, `unavailable`, `cancelled`,
    /// `timedOut`.
    func link(for call: BusCall) throws(TokenStorageError) -> KeyringLink {
        if let link = try liveLink() { return link }
        return try connecting.alone(call) { () throws(TokenStorageError) in
            if let link = try liveLink() { return link }
            let link = try KeyringLink(configuration, library: SecretLibrary.load(), for: call)
            link.connection.inbox.listen { [weak self, weak link] signal in
                if let self, let link { self.take(signal, on: link) }
            }
            memory.forgetAll()
            let isBack = state.withLock { state in
                if !state.isClosed { state.link = link }
                defer { state.wasConnected = true }
                return state.wasConnected
            }
            if isBack { reportGap() }
            return link
        }
    }

    private func liveLink() throws(TokenStorageError) -> KeyringLink? {
        let (link, isClosed) = state.withLock { ($0.link, $0.isClosed) }
        if isClosed { throw .secretService(.closed) }
        guard let link, !link.isLost else { return nil }
        return link
    }

    /// Handles a signal. Runs on GIO's thread, so nothing here may wait.
    private func take(_ signal: BusSignal, on link: KeyringLink) {
        switch (signal.interface, signal.member) {
        case (BusName.bus, "NameOwnerChanged"):
            link.forgetService()
            memory.forgetAll()
            // The values are name, old owner and new owner. With a new owner the service is back.
            if signal.values?.count == 3, signal.values?[2].text?.isEmpty == false { reportGap() }
        case (CommitNotice.interface, _):
            if let notice = CommitNotice(signal) { take(notice) }
        case (BusName.service, _):
            link.forgetCollection()
            memory.takeKeyringSignal()
        case (BusName.collection, let member):
            guard let path = signal.subject else { return }
            let (name, isWriting) = memory.take(member, path)
            if !isWriting {
                let isDeleted = member == "ItemDeleted"
                observe(changed: isDeleted ? nil : path, deleted: isDeleted ? name : nil)
            }
        default: break
        }
    }
}
