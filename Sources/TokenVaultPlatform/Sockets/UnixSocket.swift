internal import CLinux
internal import Glibc
internal import Synchronization
internal import SystemPackage

/// A connected stream socket of the local system (unix(7)).
package final class UnixSocket: Sendable {
    let descriptor: CInt
    /// Whether the last wait for data was short, so that the next one may be too.
    private let comesSoon = Atomic(true)
    private static let soon: Duration = .microseconds(200)
    private static let lookingOn: Duration = .microseconds(50)

    /// The peer as the kernel reports it (`SO_PEERCRED`): the process that connected or listened.
    package struct Peer: Equatable, Sendable {
        package let user: UInt32
        package let process: Int32
    }

    /// Takes over `descriptor` and closes it at the end.
    init(descriptor: CInt) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Returns two sockets that are connected to each other (`socketpair`).
    package static func pair() throws(SystemFailure) -> (UnixSocket, UnixSocket) {
        var ends: [CInt] = [-1, -1]
        _ = try retrying("socketpair") { clinux_socket_pair(&ends) }
        return (UnixSocket(descriptor: ends[0]), UnixSocket(descriptor: ends[1]))
    }

    /// Returns the peer.
    package func peer() throws(SystemFailure) -> Peer {
        var user: UInt32 = 0
        var process: Int32 = 0
        _ = try retrying("getsockopt(SO_PEERCRED)") { clinux_peer(descriptor, &user, &process) }
        return Peer(user: user, process: process)
    }

    /// Sets the time limit of one ``receive(into:)`` (`SO_RCVTIMEO`); `nil` for none.
    package func setReceiveTimeout(_ timeout: Duration?) throws(SystemFailure) {
        try set(SO_RCVTIMEO, timeout)
    }

    /// Sets the time limit of one connect(2) (`SO_SNDTIMEO`).
    func setSendTimeout(_ timeout: Duration?) throws(SystemFailure) { try set(SO_SNDTIMEO, timeout) }

    private func set(_ option: CInt, _ timeout: Duration?) throws(SystemFailure) {
        var time = timeval()
        if let timeout {
            // Zero would mean no limit.
            let parts = min(max(timeout, .microseconds(1)), .seconds(86_400)).components
            time.tv_sec = Int(parts.seconds)
            time.tv_usec = Int(parts.attoseconds / 1_000_000_000_000)
        }
        _ = try retrying("setsockopt") {
            setsockopt(descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    /// Receives available data, and waits for the first byte. Returns 0 at the end. Throws `ETIMEDOUT` when
    /// the receive timeout has passed.
    ///
    /// While data comes soon, this polls for a moment before it sleeps. Waking up takes tens of microseconds
    /// where an idle processor returns to the host of a virtual machine.
    func receive(into buffer: UnsafeMutableRawBufferPointer) throws(SystemFailure) -> Int {
        if let count = try receiveSoon(into: buffer) { return count }
        let soon = Deadline(after: Self.soon)
        while true {
            let result = recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if result >= 0 {
                comesSoon.store(!soon.hasPassed, ordering: .relaxed)
                return result
            }
            switch errno {
            case EINTR: continue
            case EAGAIN: throw SystemFailure(.timedOut, "recv")
            default: throw SystemFailure(Errno(rawValue: errno), "recv")
            }
        }
    }

    /// Receives data that is available now or arrives during 50 µs of polling. Does not poll if the last wait
    /// was long. Returns `nil` without data, 0 at the end.
    func receiveSoon(into buffer: UnsafeMutableRawBufferPointer) throws(SystemFailure) -> Int? {
        guard !buffer.isEmpty else { return 0 }
        guard comesSoon.load(ordering: .relaxed) else { return nil }
        let end = Deadline(after: Self.lookingOn)
        while true {
            let result = recv(descriptor, buffer.baseAddress, buffer.count, CInt(MSG_DONTWAIT))
            if result >= 0 { return result }
            switch errno {
            case EINTR: continue
            case EAGAIN:
                if end.hasPassed { return nil }
                sched_yield()
            default: throw SystemFailure(Errno(rawValue: errno), "recv")
            }
        }
    }

    /// Waits until there is data or the end. Throws `ETIMEDOUT` when `deadline` passes first.
    package func wait(until deadline: Deadline) throws(SystemFailure) {
        if let failure = InputSource.wait(for: descriptor, deadline) { throw failure }
    }

    /// The result that a receiver would get now.
    package enum Arrival: Sendable {
        /// Nothing yet.
        case nothing
        /// Bytes.
        case bytes
        /// The end: the peer is gone, and all its data has been received.
        case end
    }

    /// The result that a receiver would get now. Consumes nothing.
    package var arrival: Arrival {
        var byte: UInt8 = 0
        let result = recv(descriptor, &byte, 1, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT))
        if result < 0 { return errno == EAGAIN || errno == EINTR ? .nothing : .end }
        return result == 0 ? .end : .bytes
    }

    /// Whether the peer is gone, even if its data is not all received yet.
    package var isPeerGone: Bool { clinux_is_peer_gone(descriptor) != 0 }

    /// Sends all of `bytes`. After an error any part of them may be sent: `ETIMEDOUT` when `deadline` passes
    /// before the peer has made room, `EPIPE` when it is gone.
    func send(_ bytes: UnsafeRawBufferPointer, until deadline: Deadline) throws(SystemFailure) {
        var sent = 0
        let flags = CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT)
        while sent < bytes.count {
            let result = Glibc.send(
                descriptor, bytes.baseAddress.map { $0 + sent }, bytes.count - sent, flags)
            if result >= 0 {
                sent += result
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN: try waitForRoom(until: deadline)
            default: throw SystemFailure(Errno(rawValue: errno), "send")
            }
        }
    }

    private func waitForRoom(until deadline: Deadline) throws(SystemFailure) {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        while true {
            let result = poll(&waiting, 1, InputSource.milliseconds(until: deadline))
            if result > 0 { return }
            if result == 0, deadline.hasPassed { throw SystemFailure(.timedOut, "send") }
            if result < 0, errno != EINTR { throw SystemFailure(Errno(rawValue: errno), "poll") }
        }
    }

    /// Ends both directions (`shutdown`). Waiting receivers get the end.
    package func end() { shutdown(descriptor, CInt(SHUT_RDWR)) }

    /// Ends sending from this side. The peer can still answer.
    package func endSending() { shutdown(descriptor, CInt(SHUT_WR)) }
}
