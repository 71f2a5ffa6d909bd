internal import CSecret
package import TokenVaultCore
package import TokenVaultPlatform

/// A method call to send.
package struct BusMethod {
    var destination: String
    var path: String
    var interface: String
    var name: String
    var body: Variant?

    package init(
        destination: String = BusName.secrets, path: String, interface: String, name: String,
        body: Variant? = nil
    ) {
        self.destination = destination
        self.path = path
        self.interface = interface
        self.name = name
        self.body = body
    }
}

/// A connection to the bus that is ours alone.
///
/// The shared connection of GIO would be another library's too, with its settings, and by default ends the
/// process with the bus. Replies are taken from the stream itself (``BusInbox``): no main loop, several
/// calls in flight, one order of signals and replies.
@safe package final class BusConnection: @unchecked Sendable {
    package let library: SecretLibrary
    package let inbox: BusInbox
    private let connection: OpaquePointer
    private let filter: UInt32

    /// Which bus it is.
    package enum Bus: Equatable, Sendable { case session, system, address(String) }

    /// Connects to `bus` on this thread, which waits, for what `service` does; `cancellable` ends the wait. Throws
    /// `unavailable`.
    package init(
        _ library: SecretLibrary, _ bus: Bus, for service: BusService, cancellable: BusCancellable
    ) throws(TokenStorageError) {
        var error: OpaquePointer?
        let address: String
        if case .address(let given) = bus {
            address = given
        } else {
            // G_BUS_TYPE_SYSTEM, G_BUS_TYPE_SESSION
            let text = unsafe library.c.pointee.g_dbus_address_get_for_bus_sync(
                bus == .system ? 1 : 2, cancellable.pointer, &error)
            guard let text = unsafe text else { throw .noBus(unsafe library.take(error)) }
            address = unsafe String(cString: text)
            unsafe library.c.pointee.g_free(text)
        }
        inbox = BusInbox(service)
        // G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT | MESSAGE_BUS_CONNECTION
        let made = unsafe library.c.pointee.g_dbus_connection_new_for_address_sync(
            address, 1 | 8, nil, cancellable.pointer, &error)
        guard let made = unsafe made else { throw .noBus(unsafe library.take(error)) }
        self.library = library
        unsafe connection = unsafe made
        let context = unsafe Unmanaged.passRetained(FilterContext(library, inbox)).toOpaque()
        filter = unsafe library.c.pointee.g_dbus_connection_add_filter(
            made, receive, context,
            { context in
                guard let context = unsafe context else { return }
                unsafe Unmanaged<FilterContext>.fromOpaque(context).release()
            })
    }

    deinit {
        unsafe library.c.pointee.g_dbus_connection_remove_filter(connection, filter)
        unsafe library.c.pointee.g_dbus_connection_close(connection, nil, nil, nil)
        unsafe library.c.pointee.g_object_unref(UnsafeMutableRawPointer(connection))
    }

    /// Whether the bus went away.
    package var isClosed: Bool { unsafe library.c.pointee.g_dbus_connection_is_closed(connection) != 0 }

    /// Notices that the bus goes away; `nil` when the way to it is no socket.
    package func hangUpWatch() -> HangUpWatch? {
        let stream = unsafe library.c.pointee.g_dbus_connection_get_stream(connection)
        guard unsafe csecret_is_socket(library.c, stream) != 0 else { return nil }
        let socket = unsafe library.c.pointee.g_socket_connection_get_socket(stream)
        return try? HangUpWatch(on: unsafe library.c.pointee.g_socket_get_fd(socket))
    }

    /// What ``SecretSession`` opens its session on.
    var raw: OpaquePointer { unsafe connection }

    /// Sends `method`; its reply goes to `call`. Returns the serial number. Throws `unavailable`.
    func send(
        _ method: BusMethod, for call: BusCall, isNameRequest: Bool = false
    ) throws(TokenStorageError) -> UInt32 {
        let message = unsafe message(method)
        defer { unsafe library.c.pointee.g_object_unref(UnsafeMutableRawPointer(message)) }
        let serial = inbox.expectReply(for: call, isNameRequest: isNameRequest) { unsafe transmit(message) }
        guard serial != 0 else { throw .busIsLost }
        return serial
    }

    /// Sends `method` and wants no reply. Nothing happens when the bus is gone.
    package func tell(_ method: BusMethod) {
        let message = unsafe message(method)
        defer { unsafe library.c.pointee.g_object_unref(UnsafeMutableRawPointer(message)) }
        // G_DBUS_MESSAGE_FLAGS_NO_REPLY_EXPECTED
        unsafe library.c.pointee.g_dbus_message_set_flags(message, 1)
        _ = unsafe transmit(message)
    }

    /// Sends a signal to every listener on the bus. Nothing happens when the bus is gone.
    func emit(path: String, interface: String, signal: String, _ body: Variant) {
        let message = unsafe library.c.pointee.g_dbus_message_new_signal(path, interface, signal)
        defer { unsafe library.c.pointee.g_object_unref(UnsafeMutableRawPointer(message)) }
        unsafe library.c.pointee.g_dbus_message_set_body(message, body.pointer)
        _ = unsafe transmit(message)
    }

    /// Sends all of `methods` at once and waits for their replies. Throws `cancelled`, `timedOut`
    /// and `unavailable`.
    package func ask(
        _ methods: [BusMethod], for call: BusCall
    ) throws(TokenStorageError) -> [BusReply] {
        var serials: [UInt32] = []
        defer { inbox.forget(serials) }
        for method in methods { serials.append(try send(method, for: call)) }
        return try replies(to: serials, for: call)
    }

    /// Waits for the replies to what was sent.
    func replies(
        to serials: [UInt32], for call: BusCall
    ) throws(TokenStorageError) -> [BusReply] {
        try call.wait(isLost: { isClosed }) { state in
            guard serials.allSatisfy({ state.replies[$0] != nil }) else { return nil }
            return serials.compactMap { state.replies.removeValue(forKey: $0) }
        }
    }

    private func message(_ method: BusMethod) -> OpaquePointer? {
        let message = unsafe library.c.pointee.g_dbus_message_new_method_call(
            method.destination, method.path, method.interface, method.name)
        if let body = method.body {
            unsafe library.c.pointee.g_dbus_message_set_body(message, body.pointer)
        }
        return unsafe message
    }

    /// The serial number the message got; 0 when the bus is gone.
    private func transmit(_ message: OpaquePointer?) -> UInt32 {
        let sent = unsafe library.c.pointee.g_dbus_connection_send_message(connection, message, 0, nil, nil)
        return sent == 0 ? 0 : unsafe library.c.pointee.g_dbus_message_get_serial(message)
    }
}

/// Ends a call of the library that waits, from another thread.
@safe package final class BusCancellable: @unchecked Sendable {
    private let library: SecretLibrary
    let pointer: OpaquePointer?

    package init(_ library: SecretLibrary) {
        self.library = library
        unsafe pointer = unsafe library.c.pointee.g_cancellable_new()
    }

    deinit {
        if let pointer = unsafe pointer {
            unsafe library.c.pointee.g_object_unref(UnsafeMutableRawPointer(pointer))
        }
    }

    package func cancel() { unsafe library.c.pointee.g_cancellable_cancel(pointer) }
}

/// What the filter of a connection works with; the connection keeps it.
private final class FilterContext: Sendable {
    let library: SecretLibrary
    let inbox: BusInbox

    init(_ library: SecretLibrary, _ inbox: BusInbox) {
        self.library = library
        self.inbox = inbox
    }

    /// The first descriptor that came with the message; `nil` when none did.
    private func descriptor(of message: OpaquePointer) -> PassedDescriptor? {
        let list = unsafe library.c.pointee.g_dbus_message_get_unix_fd_list(message)
        guard let list = unsafe list, unsafe library.c.pointee.g_unix_fd_list_get_length(list) > 0 else {
            return nil
        }
        // Duplicates the descriptor: the message closes its own.
        let number = unsafe library.c.pointee.g_unix_fd_list_get(list, 0, nil)
        return number >= 0 ? PassedDescriptor(number) : nil
    }

    /// Whether the message is dealt with.
    func take(_ message: OpaquePointer) -> Bool {
        let body = unsafe library.c.pointee.g_dbus_message_get_body(message)
            .map { unsafe Variant(library, keeping: $0) }
        let sender = unsafe library.text(library.c.pointee.g_dbus_message_get_sender(message))
        let type = unsafe library.c.pointee.g_dbus_message_get_message_type(message)
        // G_DBUS_MESSAGE_TYPE_METHOD_RETURN, ERROR, SIGNAL. A reply from any other sender is dropped before
        // the library sees it.
        if type == 2 || type == 3, !inbox.mayReply(sender) { return true }
        switch type {
        case 2:
            if let descriptor = unsafe descriptor(of: message) {
                return inbox.take(
                    .descriptor(descriptor),
                    to: unsafe library.c.pointee.g_dbus_message_get_reply_serial(message))
            }
            let values = body ?? VariantFactory(library: library).tuple([])
            return inbox.take(
                .values(values), to: unsafe library.c.pointee.g_dbus_message_get_reply_serial(message))
        case 3:
            let name = unsafe library.text(library.c.pointee.g_dbus_message_get_error_name(message))
            let said = body.flatMap { $0.isOf("(s)") ? $0[0].text : nil } ?? ""
            return inbox.take(
                .error(name: name, text: said),
                to: unsafe library.c.pointee.g_dbus_message_get_reply_serial(message))
        case 4:
            inbox.take(
                BusSignal(
                    sender: sender,
                    path: unsafe library.text(library.c.pointee.g_dbus_message_get_path(message)),
                    interface: unsafe library.text(library.c.pointee.g_dbus_message_get_interface(message)),
                    member: unsafe library.text(library.c.pointee.g_dbus_message_get_member(message)),
                    values: body))
            return false
        default: return false
        }
    }
}

/// GIO calls this on its own thread with every message; it keeps those for which nothing is returned.
private func receive(
    _ connection: OpaquePointer?, _ message: OpaquePointer?, _ isIncoming: Int32,
    _ context: UnsafeMutableRawPointer?
) -> OpaquePointer? {
    guard isIncoming != 0, let message = unsafe message, let context = unsafe context else {
        return unsafe message
    }
    let filter = unsafe Unmanaged<FilterContext>.fromOpaque(context).takeUnretainedValue()
    guard unsafe filter.take(message) else { return unsafe message }
    unsafe filter.library.c.pointee.g_object_unref(UnsafeMutableRawPointer(message))
    return nil
}
