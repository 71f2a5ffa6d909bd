internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultPlatform

/// A connection to the bus with what was found on it: the session, and the collection for new items.
///
/// A new service on the same bus (``forgetService()``) needs a new session; a lost bus needs a new link.
final class KeyringLink: Sendable {
    private struct State {
        var session: SecretSession?
        var collection: String?
        // Grows when another process becomes the service on the bus.
        var epoch = 0
    }

    let connection: BusConnection
    private let configuration: SecretServiceConfiguration
    private let state = Mutex(State())
    private let opening = TurnQueue()

    /// Connects. Throws `unavailable`, `cancelled`, `timedOut`.
    init(
        _ configuration: SecretServiceConfiguration, library: SecretLibrary, for call: BusCall
    ) throws(TokenStorageError) {
        self.configuration = configuration
        let bus: BusConnection.Bus =
            if case .address(let address) = configuration.bus { .address(address) } else { .session }
        connection = try Self.waiting(call, library) { (cancellable) throws(TokenStorageError) in
            try BusConnection(library, bus, for: .secrets, cancellable: cancellable)
        }
        for rule in [
            "type='signal',sender='\(BusName.secrets)',interface='\(BusName.service)'",
            "type='signal',sender='\(BusName.secrets)',interface='\(BusName.collection)'",
            "type='signal',sender='\(BusName.secrets)',interface='\(BusName.prompt)'",
            "type='signal',sender='\(BusName.bus)',member='NameOwnerChanged',arg0='\(BusName.secrets)'",
            "type='signal',interface='\(CommitNotice.interface)',path='\(CommitNotice.path)'",
        ] {
            connection.tell(
                .bus("AddMatch", VariantFactory(library: library).tuple([make.text(rule)])))
        }
    }

    /// Makes values for calls.
    var make: VariantFactory { VariantFactory(library: connection.library) }

    /// Whether the bus went away.
    var isLost: Bool { connection.isClosed }

    /// The service on the bus is another one now, or none.
    func forgetService() {
        state.withLock { state in
            state.session = nil
            state.collection = nil
            state.epoch += 1
        }
    }

    /// The session does not exist any more.
    func forget(_ session: SecretSession) {
        state.withLock { if $0.session === session { $0.session = nil } }
    }

    /// The session, opened when there is none. Throws `unavailable`, `notPermitted` for a service that
    /// offers no encryption, `cancelled`, `timedOut`.
    func session(for call: BusCall) throws(TokenStorageError) -> SecretSession {
        if let session = state.withLock({ $0.session }) { return session }
        return try opening.alone(call) { () throws(TokenStorageError) in
            if let session = state.withLock({ $0.session }) { return session }
            let epoch = state.withLock { $0.epoch }
            let connection = connection
            try startService(for: call)
            let session = try Self.waiting(call, connection.library) {
                (cancellable) throws(TokenStorageError) in
                try SecretSession(connection, cancellable: cancellable)
            }
            if session.isPlain, !configuration.allowsPlainSession {
                throw .secretService(.notPermitted, .permission(.plainSession))
            }
            state.withLock { if $0.epoch == epoch { $0.session = session } }
            return session
        }
    }

    /// Has the bus start the service when there is none. Throws `unavailable` when it knows none.
    private func startService(for call: BusCall) throws(TokenStorageError) {
        let name = make.text(BusName.secrets)
        let changes = connection.inbox.ownerChanges
        let owner = try connection.ask([.bus("GetNameOwner", make.tuple([name]))], for: call)[0]
        if case .values(let values) = owner {
            guard values.isOf("(s)") else { throw Self.unexpected }
            return connection.inbox.note(owner: values[0].text, since: changes)
        }
        let start = make.tuple([name, make.number(UInt32(0))])
        let reply = try connection.ask([.bus("StartServiceByName", start)], for: call)[0]
        _ = try Self.values(reply, "(u)")
    }

    /// The collection's path: what was found before on this service, or what `find` finds now.
    func collection(
        _ find: () throws(TokenStorageError) -> String?
    ) throws(TokenStorageError) -> String? {
        let (known, epoch) = state.withLock { ($0.collection, $0.epoch) }
        if let known { return known }
        let path = try find()
        state.withLock { if $0.epoch == epoch { $0.collection = path } }
        return path
    }

    /// The collection is not there any more, or another one may be meant now.
    func forgetCollection() { state.withLock { $0.collection = nil } }

    /// Runs what blocks inside of the library on a thread of its own, until it ends or the call does.
    private static func waiting<Value: Sendable>(
        _ call: BusCall, _ library: SecretLibrary,
        _ body: @escaping @Sendable (BusCancellable) throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        let cancellable = BusCancellable(library)
        let slot = Slot<Value>()
        WorkerThread(name: "secret-connect").run {
            let result = Result { () throws(TokenStorageError) in try body(cancellable) }
            slot.value.withLock { $0 = result }
            call.deliver { _ in }
        }
        do {
            let result = try call.wait(isLost: { false }) { _ in slot.value.withLock { $0 } }
            return try result.get()
        } catch {
            cancellable.cancel()
            throw error
        }
    }

    private final class Slot<Value: Sendable>: Sendable {
        let value = Mutex<Result<Value, TokenStorageError>?>(nil)
    }
}

extension BusMethod {
    /// A call of the bus itself.
    package static func bus(_ name: String, _ body: Variant) -> BusMethod {
        BusMethod(
            destination: BusName.bus, path: BusName.busPath, interface: BusName.bus, name: name, body: body)
    }
}
