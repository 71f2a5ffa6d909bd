import Glibc
import Synchronization
import SystemPackage
import Testing
import TokenVault
import VaultAgent

@testable import TokenVaultPlatform
@testable import VaultAgentServer

/// An agent's server in this process, with limits that a test can wait for.
final class LocalServer: Sendable {
    let server: AgentServer
    private let isOver = Monitor(false)

    init(
        at place: AgentEndpoint, _ change: (inout AgentLimits) -> Void = { _ in },
        stopping: @escaping @Sendable (AgentServer) -> Void = { _ in },
        makeThread: @escaping @Sendable () -> WorkerThread = { WorkerThread(name: "client") }
    ) throws {
        var limits = AgentLimits()
        change(&limits)
        server = try AgentServer(limits: limits, makeThread: makeThread)
        let listening = try AgentListening(at: place)
        WorkerThread(name: "agent").run { [server, isOver] in
            _ = try? server.run(listening, stopping: { stopping(server) })
            isOver.announce { $0 = true }
        }
    }

    deinit { end() }

    /// Waits until as many clients are at what `isSuch` takes; false when it is not so in the end.
    func wait(
        for count: Int, atMost duration: Duration = .seconds(300),
        where isSuch: (ClientConnection.Activity) -> Bool
    ) -> Bool {
        let deadline = Deadline(after: duration)
        var backOff = BackOff()
        while server.clients(where: isSuch) != count, backOff.wait(until: deadline) {}
        return server.clients(where: isSuch) == count
    }

    /// Ends it and waits until it has.
    func end() {
        server.end()
        wait()
    }

    /// Waits until it has ended.
    func wait() { isOver.wait { $0 ? () : nil } }
}

/// An agent in this process, and clients of a home's vault.
final class LocalAgent: Sendable {
    let home: TestHome
    private let local: LocalServer
    var server: AgentServer { local.server }

    init(
        in home: TestHome, _ change: (inout AgentLimits) -> Void = { _ in },
        stopping: @escaping @Sendable (AgentServer) -> Void = { _ in },
        makeThread: @escaping @Sendable () -> WorkerThread = { WorkerThread(name: "client") }
    ) throws {
        self.home = home
        local = try LocalServer(at: home.place, change, stopping: stopping, makeThread: makeThread)
    }

    /// Waits until `count` clients are subscribed to changes. Returns false when `duration` ends first.
    func wait(forSubscribers count: Int, atMost duration: Duration) -> Bool {
        local.wait(for: count, atMost: duration) { if case .subscribed = $0 { true } else { false } }
    }

    /// Ends the agent and waits until it has.
    func end() { local.end() }

    /// Waits until it has ended.
    func wait() { local.wait() }

    /// A client of the home's vault.
    func vault(timeout: Duration = .seconds(300)) -> BlockingAgentVault {
        BlockingAgentVault(at: home.vault, agent: home.place, timeout: timeout)
    }

    func unlockedVault() throws -> BlockingAgentVault {
        let vault = vault()
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        return vault
    }
}

/// A client that says what no client of ours would.
struct RawClient {
    let socket: UnixSocket
    private let incoming = WipedBuffer(capacity: 4 << 10)

    init(_ place: AgentEndpoint) throws {
        let directory = try SocketDirectory(place.directory, creating: false)
        socket = try directory.connect(to: AgentEndpoint.socketName, within: .seconds(300))
    }

    func send(_ bytes: [UInt8], atMost duration: Duration = .seconds(300)) throws {
        let buffer = WipedBuffer(capacity: 64)
        buffer.append(bytes)
        try buffer.send(to: socket, until: Deadline(after: duration))
    }

    /// Says hello and asks, without reading what is answered.
    func ask(
        _ operation: AgentOperation, _ home: TestHome, count: Int = 1,
        atMost duration: Duration = .seconds(300)
    )
        throws
    {
        let buffer = WipedBuffer(capacity: 64)
        var writer = WireWriter(buffer)
        writer.appendHello()
        for number in 0..<count {
            let request = AgentRequest(
                id: UInt32(number), vault: VaultReference(at: home.vault), operation: operation)
            _ = request.write(to: &writer)
        }
        try buffer.send(to: socket, until: Deadline(after: duration))
    }

    /// Says hello and sends the parts of one request.
    func ask(_ parts: [AgentOperation], _ home: TestHome) throws {
        let buffer = WipedBuffer(capacity: 64)
        var writer = WireWriter(buffer)
        writer.appendHello()
        for part in parts {
            let request = AgentRequest(id: 7, vault: VaultReference(at: home.vault), operation: part)
            _ = request.write(to: &writer)
        }
        try buffer.send(to: socket, until: Deadline(after: .seconds(300)))
    }

    /// Sends what else belongs to the request.
    func ask(more part: AgentOperation, _ home: TestHome) throws {
        let buffer = WipedBuffer(capacity: 64)
        var writer = WireWriter(buffer)
        _ = AgentRequest(id: 7, vault: VaultReference(at: home.vault), operation: part).write(to: &writer)
        try buffer.send(to: socket, until: Deadline(after: .seconds(300)))
    }

    /// What the agent answers first.
    enum Answer: Equatable {
        case kind(AgentWire.Kind)
        case failure(TokenStorageError.Code)
        case end
    }

    /// Reads what the agent answers first.
    func answer() throws -> Answer {
        try socket.setReceiveTimeout(.seconds(300))
        while true {
            while let range = try WireFrame.payload(in: incoming) {
                defer { incoming.removeFirst(range.upperBound) }
                let kind = try WireFrame.kind(of: incoming, range)
                guard kind != .hello else { continue }
                guard kind == .failure else { return .kind(kind) }
                var reader = WireReader(incoming, in: range.dropFirst(5))
                return .failure(try reader.error().code)
            }
            let limit = max(WireFrame.announced(in: incoming) ?? 0, 4 << 10)
            guard try incoming.receive(from: socket, upTo: limit) > 0 else { return .end }
        }
    }

    /// Reads changes until the event that asks for a new listing, or until the connection ends. Returns how
    /// many changes came before that.
    func changes() throws -> Int {
        try socket.setReceiveTimeout(.seconds(300))
        var count = 0
        while true {
            while let range = try WireFrame.payload(in: incoming) {
                defer { incoming.removeFirst(range.upperBound) }
                guard try WireFrame.kind(of: incoming, range) == .event else { continue }
                var reader = WireReader(incoming, in: range.dropFirst(5))
                if try reader.event() == .overflowed { return count }
                count += 1
            }
            do {
                guard try incoming.receive(from: socket, upTo: 4 << 10) > 0 else { return count }
            } catch {
                guard error.errno == .connectionReset else { throw error }
                return count
            }
        }
    }

    /// Reads to the end of the connection, or for so long; how many bytes there were.
    func readToEnd(atMost duration: Duration = .seconds(300)) throws -> Int {
        try socket.setReceiveTimeout(duration)
        var total = 0
        while true {
            do {
                let count = try incoming.receive(from: socket, upTo: 4 << 10)
                if count == 0 { return total }
                total += count
            } catch {
                guard error.errno == .connectionReset else { throw error }
                return total
            }
            incoming.removeAll()
        }
    }

    /// How many bytes the kernel has for the client (`FIONREAD`).
    var waiting: Int {
        var count: CInt = 0
        return ioctl(socket.descriptor, 0x541b, &count) == 0 ? Int(count) : 0
    }

    /// Whether the agent has taken all that was sent (`TIOCOUTQ`).
    var isTaken: Bool {
        var count: CInt = 0
        return ioctl(socket.descriptor, 0x5411, &count) != 0 || count == 0
    }

    /// Waits until the kernel has as many bytes for the client; false when it has not in the end.
    func wait(forBytes count: Int) -> Bool {
        let deadline = Deadline(after: .seconds(300))
        var backOff = BackOff()
        while waiting < count, backOff.wait(until: deadline) {}
        return waiting >= count
    }

    /// Reads what comes, whatever it is: as many bytes, or until there is `text`.
    func bytes(_ count: Int, orUntil text: String? = nil) throws -> String {
        try socket.setReceiveTimeout(.seconds(300))
        var all: [UInt8] = []
        while all.count < count {
            do {
                let limit = min(4 << 10, count - all.count)
                guard try incoming.receive(from: socket, upTo: limit) > 0 else { break }
            } catch {
                guard error.errno == .connectionReset else { throw error }
                break
            }
            all += incoming.array(in: 0..<incoming.count) ?? []
            incoming.removeAll()
            if let text, String(decoding: all, as: UTF8.self).contains(text) { break }
        }
        return String(decoding: all, as: UTF8.self)
    }
}
