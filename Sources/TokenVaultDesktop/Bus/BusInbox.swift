internal import Synchronization
internal import TokenVaultCore

/// A signal that some program sent.
package struct BusSignal: Sendable {
    package let sender: String
    package let path: String
    package let interface: String
    package let member: String
    package let values: Variant?

    /// The first value, when it is a text.
    package var subject: String? { values.flatMap { $0.count > 0 ? $0[0].text : nil } }
}

/// Takes the messages of a connection in their order, and delivers each to its call or to the listening
/// closure.
///
/// GIO's own thread calls the inbox, and no method here waits. The inbox handles signals and replies in one
/// order, so a reader can trust its memory. Every signal that a service sends before a reply is handled
/// before that reply.
package final class BusInbox: Sendable {
    private struct State {
        var waiting: [UInt32: BusCall] = [:]
        var prompts: [String: BusCall] = [:]
        var listener: (@Sendable (BusSignal) -> Void)?
        // The request for the writers' name, and the call that sent it.
        var nameRequest: UInt32?
        var writer: BusCall?
        // The connection that owns the service's name, and how many changes of the owner the bus reported.
        var owner: String?
        var ownerChanges = 0
    }

    private let service: BusService
    private let state = Mutex(State())

    /// What arrives on a connection that is for `service`.
    init(_ service: BusService) { self.service = service }

    /// Sets the closure that gets every accepted signal, on GIO's thread.
    package func listen(_ listener: @escaping @Sendable (BusSignal) -> Void) {
        state.withLock { $0.listener = listener }
    }

    /// Sends while no reply can be missed; `send` returns the message's serial number, 0 when it failed.
    /// `isNameRequest` for the message that asks for the writers' name.
    func expectReply(for call: BusCall, isNameRequest: Bool = false, _ send: () -> UInt32) -> UInt32 {
        state.withLock { state in
            let serial = send()
            guard serial != 0 else { return 0 }
            state.waiting[serial] = call
            if isNameRequest {
                state.nameRequest = serial
                state.writer = call
            }
            return serial
        }
    }

    /// Removes the calls that wait for replies to `serials`.
    func forget(_ serials: [UInt32]) {
        state.withLock { state in for serial in serials { state.waiting[serial] = nil } }
    }

    /// Gives the outcome of the prompt at `path` to `call`.
    func expectPrompt(at path: String, for call: BusCall) { state.withLock { $0.prompts[path] = call } }

    func forgetPrompt(at path: String) { state.withLock { $0.prompts[path] = nil } }

    /// Whether replies of `sender` count: those of the bus, and of the service. Others only guess what this
    /// connection asked for; the bus lets them through.
    func mayReply(_ sender: String) -> Bool {
        sender == BusName.bus || state.withLock { $0.owner == sender }
    }

    /// Delivers `reply` to the call that sent the message `serial`. Returns whether such a call waits here.
    func take(_ reply: BusReply, to serial: UInt32) -> Bool {
        let call = state.withLock { state -> BusCall? in
            guard let call = state.waiting.removeValue(forKey: serial) else { return nil }
            guard serial == state.nameRequest else { return call }
            state.nameRequest = nil
            // DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER, or ALREADY_OWNER
            if case .values(let values) = reply, let code = values.elements.first?.shortNumber,
                code == 1 || code == 4
            {
                call.deliver { $0.isWriter = true }
            }
            return call
        }
        guard let call else { return false }
        call.deliver { $0.replies[serial] = reply }
        return true
    }

    /// A signal.
    func take(_ signal: BusSignal) {
        // Any program can send a signal of any name to this connection. The sender comes from the bus.
        if signal.interface == BusName.bus {
            guard signal.sender == BusName.bus else { return }
        } else if service.interfaces.contains(signal.interface) {
            guard state.withLock({ $0.owner == signal.sender }) else { return }
        }
        switch (signal.interface, signal.member) {
        case (BusName.prompt, "Completed"):
            let call = state.withLock { $0.prompts.removeValue(forKey: signal.path) }
            guard let call, let values = signal.values, values.count == 2 else { return }
            let outcome: BusCall.PromptOutcome =
                values[0].bool == false ? .completed(values[1].content) : .dismissed
            call.deliver { $0.prompt = outcome }
        case (BusName.bus, "NameAcquired") where signal.subject == BusName.writer:
            // A signal before the reply to the present request belongs to an earlier request that was given
            // up.
            let call = state.withLock { $0.nameRequest == nil ? $0.writer : nil }
            call?.deliver { $0.isWriter = true }
        case (BusName.bus, "NameOwnerChanged") where signal.subject == service.name:
            // The values are name, old owner and new owner: a connection's own name, or empty without an
            // owner.
            let owner = signal.values.flatMap { $0.count == 3 ? $0[2].text : nil } ?? ""
            let calls = state.withLock { state in
                state.owner = owner.isEmpty ? nil : owner
                state.ownerChanges += 1
                defer { state.prompts = [:] }
                return Array(state.prompts.values)
            }
            for call in calls { call.deliver { $0.prompt = .lost } }
        default: break
        }
        state.withLock { $0.listener }?(signal)
    }

    /// How often the bus told that the service's name has another owner.
    package var ownerChanges: Int { state.withLock { $0.ownerChanges } }

    /// The connection that owns the service's name, asked for when the bus had told `changes` times.
    package func note(owner: String?, since changes: Int) {
        state.withLock { if $0.ownerChanges == changes { $0.owner = owner } }
    }

    /// The writer's call is over.
    func forgetWriter() {
        state.withLock { state in
            state.writer = nil
            state.nameRequest = nil
        }
    }
}

/// The service that a connection is for. Replies count only from the owner of the name and from the bus. Signals of
/// these interfaces count only from the owner.
package struct BusService: Sendable {
    let name: String
    let interfaces: Set<String>

    package init(name: String, interfaces: Set<String>) {
        self.name = name
        self.interfaces = interfaces
    }

    static let secrets = BusService(
        name: BusName.secrets, interfaces: [BusName.service, BusName.collection, BusName.prompt])
}

/// Names on the bus.
package enum BusName {
    package static let bus = "org.freedesktop.DBus"
    static let busPath = "/org/freedesktop/DBus"
    static let properties = "org.freedesktop.DBus.Properties"
    package static let secrets = "org.freedesktop.secrets"
    static let secretsPath = "/org/freedesktop/secrets"
    static let service = "org.freedesktop.Secret.Service"
    static let collection = "org.freedesktop.Secret.Collection"
    static let item = "org.freedesktop.Secret.Item"
    static let prompt = "org.freedesktop.Secret.Prompt"
    /// What gnome-keyring's own programs use; its name says that others do so at their own risk.
    static let gnomeKeyring = "org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface"
    /// The name whose owner writes. The bus gives the name to one connection at a time, and takes it back
    /// when a process ends.
    static let writer = "org.tokenvault.SecretServiceWriter"
}
