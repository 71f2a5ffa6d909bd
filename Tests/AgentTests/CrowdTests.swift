import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

@testable import VaultAgentServer

/// A program that asks for much at once, and the others.
@Suite(.tags(.programs), .from(.usual), .timeLimit(.minutes(20))) struct CrowdTests {
    private let home: CommandHome
    private var vault: FilePath { FilePath("\(home.path)/.local/share/tokenvault/default.vault") }

    init() throws { home = try CommandHome() }

    private func waitForWaiters(_ queue: TurnQueue, _ isRight: (Int) -> Bool) {
        let deadline = Deadline(after: .seconds(300))
        var backOff = BackOff()
        while !isRight(queue.waiters), backOff.wait(until: deadline) {}
        #expect(isRight(queue.waiters))
    }

    private func ask(_ operation: AgentOperation, count: Int) throws -> RawClient {
        let client = try RawClient(home.place)
        let buffer = WipedBuffer(capacity: 64)
        var writer = WireWriter(buffer)
        writer.appendHello()
        for number in 0..<count {
            _ = AgentRequest(id: UInt32(number), vault: VaultReference(at: vault), operation: operation)
                .write(to: &writer)
        }
        try buffer.send(to: client.socket, until: Deadline(after: .seconds(300)))
        return client
    }

    private func unlock(_ key: String = "wrong") -> AgentOperation {
        .unlock(
            UnlockOrder(
                method: .keyFile(Secret(utf8: "not a real key of a crowd \(key) 0123456789abcdef")),
                stateDirectory: nil, idleTime: nil))
    }

    @Test func manyWhoWaitToUnlockKeepNobodyFromLocking() throws {
        let agent = try LocalServer(at: home.place) { $0.connections = 12 }
        let unlocked = try home.run("unlock", "--key-file", home.keyFile)
        #expect(unlocked.status == 0, "\(unlocked.error)")
        try #require(try home.run("store", "k", "--policy", "when-unlocked", input: "a").status == 0)
        // Stands for a derivation that never ends.
        let queue = agent.server.vaults.unlockTurns
        var turn: TurnQueue.Turn? = try queue.turn(for: 1, atMost: .seconds(300), isWanted: { true })
        var crowd: [RawClient] = []
        for _ in 0..<12 { crowd.append(try ask(unlock(), count: 50)) }
        waitForWaiters(queue) { $0 >= 11 }
        let retrieved = try home.run("retrieve", "k")
        #expect(retrieved.status == 0 && retrieved.output == "a", "\(retrieved.error)")
        let locked = try home.run("lock")
        #expect(locked.status == 0, "\(locked.error)")
        #expect(try home.run("retrieve", "k").status == 4)
        #expect(agent.server.clients <= 12)
        withExtendedLifetime(turn) {}
        turn = nil
        // Another process's request is next, rather than last behind the whole crowd.
        let again = try home.run("unlock", "--key-file", home.keyFile)
        #expect(again.status == 0, "\(again.error)")
        withExtendedLifetime(crowd) {}
    }

    /// Commits that wait for another program's lock are running requests. The agent does not end them to make
    /// room for other clients.
    @Test func manyWhoAreAtWorkKeepNobodyFromLocking() throws {
        let agent = try LocalServer(at: home.place) { $0.connections = 6 }
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        try #require(try home.run("store", "k", "--policy", "when-unlocked", input: "a").status == 0)
        let directory = try PosixDirectory(vault.removingLastComponent())
        let file = try directory.open("default.vault", .readWrite)
        #expect(try file.tryLock(.exclusive))
        let change = TokenChange.store(Secret([1]), for: "busy")
        let busy = try (0..<6).map { _ in
            try ask(.commit(service: "default", changes: [change]), count: 30)
        }
        #expect(agent.wait(for: 6) { if case .working = $0 { true } else { false } })
        // A new client is served only for a lock.
        #expect(try ask(.state, count: 1).answer() == .kind(.goodbye))
        let locked = try home.run("lock")
        #expect(locked.status == 0, "\(locked.error)")
        file.unlock()
        #expect(try home.run("retrieve", "k").status == 4)
        withExtendedLifetime((agent, busy)) {}
    }

    @Test func whatDeadClientsAskedForIsNotDone() throws {
        let agent = try LocalServer(at: home.place)
        let queue = agent.server.vaults.unlockTurns
        var turn: TurnQueue.Turn? = try queue.turn(for: 1, atMost: .seconds(300), isWanted: { true })
        let key = try SmallFile.read(FilePath(home.keyFile), limit: 8_192).bytes
        let right = AgentOperation.unlock(
            UnlockOrder(
                method: .keyFile(Secret(key.last == 0x0a ? key.dropLast() : key)), stateDirectory: nil,
                idleTime: nil))
        let client = try ask(right, count: 30)
        waitForWaiters(queue) { $0 == 1 }
        #expect(agent.server.clients == 1)
        // Ends the connection as the end of the process would. A child that another test starts may hold the
        // descriptor for a moment.
        client.socket.end()
        withExtendedLifetime(turn) {}
        turn = nil
        #expect(agent.server.waitForClients(0, atMost: .seconds(300)))
        let reader = BlockingAgentVault(at: vault, agent: home.place, timeout: .seconds(300))
        #expect(try reader.isHeld() == false)
        // The key of the dead client was right.
        let living = try ask(right, count: 1)
        #expect(try living.answer() == .kind(.result))
        #expect(try reader.isHeld())
    }

    /// Changes take many times the memory of their bytes: what is refused for that must not have taken it before.
    @Test func commitsThatAreRefusedTakeNoMemory() throws {
        let agent = try TestAgent(in: try TestHome())
        _ = try agent.unlockedVault()
        let changes = (0..<50_000).map { _ in TokenChange.delete("k") }
        let request = AgentRequest(
            id: 1, vault: VaultReference(at: agent.home.vault),
            operation: .commitPart(service: "s", changes: changes))
        let before = try agent.process.fact("VmHWM")
        let crowd = try (0..<100).map { _ in try RawClient(agent.place) }
        let group = Monitor(0)
        for client in crowd {
            WorkerThread(name: "crowd").run { [socket = client.socket] in
                let frame = WipedBuffer(capacity: 1 << 20)
                var writer = WireWriter(frame)
                writer.appendHello()
                _ = request.write(to: &writer)
                try? frame.send(to: socket, until: Deadline(after: .seconds(300)))
                group.announce { $0 += 1 }
            }
        }
        _ = group.wait(atMost: .seconds(300)) { $0 == crowd.count ? () : nil }
        // This request comes after those of the crowd, though perhaps before the agent has looked at all of
        // them.
        #expect(try agent.vault().lockState() == .unlocked)
        let grown = try agent.process.fact("VmHWM") - before
        #expect(grown < 500 << 10, "\(grown) KiB")
        withExtendedLifetime(crowd) {}
    }

    private func fill() throws {
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        let vault = BlockingAgentVault(at: vault, agent: home.place, timeout: .seconds(300))
        // The listing must not fit into a socket's buffer.
        let label = String(repeating: "x", count: 200)
        for start in stride(from: 0, to: 8_000, by: 1_000) {
            try vault.storage(service: "default").commit(
                (start..<start + 1_000).map {
                    .store(Secret([1]), for: TokenKey("\($0)"), details: TokenDetails(label: label))
                })
        }
        vault.close()
    }

    @Test func listingsThatNobodyReadsAreNotMade() throws {
        let agent = try LocalServer(at: home.place) { limits in
            limits.answerTime = .seconds(1_200)
            limits.listingTime = limits.answerTime
        }
        try fill()
        let queue = agent.server.vaults.listTurns
        let deaf = try (0..<20).map { _ in try ask(.list(service: "default", query: .all), count: 3) }
        // Two listings are sent; the others wait and take no memory.
        waitForWaiters(queue) { $0 == 18 }
        let listed = try home.run("list")
        #expect(listed.status == 0 && listed.output.split(separator: "\n").count == 8_000, "\(listed.error)")
        #expect(queue.waiters == 18)
        withExtendedLifetime(deaf) {}
    }

    @Test func whoDoesNotReadAListingMakesRoomForOthers() throws {
        let agent = try LocalServer(at: home.place) { $0.answerTime = .seconds(1_200) }
        try fill()
        let queue = agent.server.vaults.listTurns
        // These processes use up their share.
        let taken = try [1, 1, 2, 2].map { try queue.turn(for: $0, atMost: .zero, isWanted: { true }) }
        let deaf = try (0..<3).map { _ in try ask(.list(service: "default", query: .all), count: 3) }
        waitForWaiters(queue) { $0 == 1 }
        let listed = try home.run("list")
        #expect(listed.status == 0 && listed.output.split(separator: "\n").count == 8_000, "\(listed.error)")
        withExtendedLifetime((taken, deaf)) {}
    }

    @Test func subscriptionsOfAProcessThatHasManyMakeRoomFirst() throws {
        let pairs = try (0..<5).map { _ in try UnixSocket.pair() }
        let server = try AgentServer()
        let context = ClientConnection.Context(
            handler: RequestHandler(vaults: server.vaults), limits: AgentLimits(),
            budget: CommitBudget(1, share: 1), endUnreadListings: {}, maySubscribe: { true },
            goesOn: { true }, endAgent: {})
        var connections: [UInt64: ClientConnection] = [:]
        // The oldest subscription is another process's.
        for (number, process) in [7, 8, 8, 8, 9].enumerated() {
            let connection = ClientConnection(pairs[number].0, from: Int32(process), context)
            #expect(connection.become { .subscribed(since: $0) })
            connections[UInt64(number)] = connection
        }
        #expect(EvictionOrder.order(connections).first?.0 == 1)
        withExtendedLifetime(pairs) {}
    }
}
