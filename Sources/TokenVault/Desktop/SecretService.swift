internal import Synchronization
internal import TokenVaultPlatform

/// The person's own keyring, through the Secret Service of their desktop (gnome-keyring, KWallet,
/// KeePassXC): one connection and one encrypted session, shared by the storages of several services. Items are
/// looked for in every keyring of theirs.
///
/// ```swift
/// let service = SecretService(configuration: SecretServiceConfiguration())
/// let storage = service.storage(service: "com.example.app")
/// try await storage.store(token: "eyJ…", for: "access_token")
/// ```
///
/// Nothing is looked for before the first call; libsecret is loaded then. A call finds the bus, the service
/// and the keyring anew when they went away and came back, and throws `unavailable` while they are gone.
/// A lost bus never ends the process.
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
    // A prompt that a person looks at for a minute keeps a thread: others go on.
    let threads = WorkerPool(name: "secret-service", maximum: 64)
    private let state = Mutex(State())
    private let connecting = TurnQueue()

    /// The keyring that `configuration` names. Does not connect yet, and never fails.
    ///
    /// `promptObserver` is called with true before each prompt and with false when that is over, answered or
    /// not: a person may have to look for the prompt's window. It is called on the thread that waits.
    public init(
        configuration: SecretServiceConfiguration = SecretServiceConfiguration(),
        promptObserver: (@Sendable (_ isShown: Bool) -> Void)? = nil
    ) {
        self.configuration = configuration
        self.promptObserver = promptObserver
    }

    deinit { hub.end() }

    /// The storage of `service` in this keyring. An unusable service is `invalidArgument` in every call.
    public func storage(service: String) -> SecretServiceTokenStorage {
        SecretServiceTokenStorage(self, service: service)
    }

    /// Closes the connection, the session with it, and ends every sequence of changes. Later calls throw
    /// `closed`; calls under way end as they would have.
    public func close() {
        state.withLock { state in
            state.isClosed = true
            state.link = nil
        }
        hub.end()
    }

    /// The link, made when there is none. Throws `closed`, `unavailable`, `cancelled`, `timedOut`.
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

    /// On GIO's thread: nothing here may wait.
    private func take(_ signal: BusSignal, on link: KeyringLink) {
        switch (signal.interface, signal.member) {
        case (BusName.bus, "NameOwnerChanged"):
            link.forgetService()
            memory.forgetAll()
            // Name, old owner, new owner: it is back.
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
