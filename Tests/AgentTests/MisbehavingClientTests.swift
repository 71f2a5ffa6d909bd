import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

@testable import VaultAgentServer

@Suite(.tags(.programs), .from(.usual)) struct MisbehavingClientTests {
    let home: TestHome

    init() throws { home = try TestHome() }

    /// Checks that the agent serves the vault to a client that behaves.
    private func expectService(_ vault: BlockingAgentVault, _ token: String) throws {
        let storage = vault.storage(service: "good")
        try storage.store(token: token, for: "key")
        #expect(try storage.retrieve(for: "key") == token)
    }

    @Test func garbageEndsItsConnectionAlone() throws {
        let agent = try LocalAgent(in: home)
        let vault = try agent.unlockedVault()
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<50 {
            let client = try RawClient(home.place)
            let noise = (0..<Int.random(in: 4...300)).map { _ in UInt8.random(in: 0...255, using: &generator)
            }
            // The frame begins with a length of 4 GiB, or with a length that is too short.
            let front: [UInt8] = Bool.random(using: &generator) ? [0xff, 0xff, 0xff, 0xff] : [0, 0, 0, 0]
            try client.send(front + noise)
            #expect(try client.readToEnd() == 0)
        }
        try expectService(vault, "one")
    }

    /// It would have five minutes for it.
    @Test func whoDoesNotReadTheirAnswerDoesNotKeepTheAgentFromEnding() throws {
        let agent = try LocalAgent(in: home) { $0.endTime = .seconds(300) }
        let big = Secret(repeatElement(UInt8(3), count: 900_000))
        try agent.unlockedVault().storage(service: "good").store(big, for: "big")
        let client = try RawClient(home.place)
        try client.ask(.secret(service: "good", key: "big"), home)
        try client.socket.wait(until: Deadline(after: .seconds(300)))
        let start = ContinuousClock.now
        agent.end()
        #expect(start.duration(to: .now) < .seconds(100))
    }

    @Test func aWrongHelloIsAnsweredWithTheVersionOrNothing() throws {
        let agent = try LocalAgent(in: home)
        // The first words of another protocol, in a complete frame.
        let stranger = try RawClient(home.place)
        try stranger.send([9, 0, 0, 0] + Array("GET / HTT".utf8))
        #expect(try stranger.readToEnd() == 0)
        // A newer client gets the version of this agent.
        let newer = try RawClient(home.place)
        let buffer = WipedBuffer(capacity: 64)
        var writer = WireWriter(buffer)
        writer.appendHello(lowest: 900, highest: 901)
        try newer.send(try #require(buffer.array(in: 0..<buffer.count)))
        #expect(try newer.readToEnd() == 21)
        // This client sends a request before any hello.
        let hasty = try RawClient(home.place)
        try hasty.send(try Samples.frame(.state))
        #expect(try hasty.readToEnd() == 0)
        try expectService(try agent.unlockedVault(), "one")
    }

    @Test func halfAFrameEndsWhenItsTimeIsOver() throws {
        let agent = try LocalAgent(in: home) { $0.requestTime = .seconds(3) }
        let vault = try agent.unlockedVault()
        let frame = try Samples.frame(.state)
        var clients: [RawClient] = []
        for length in [1, 3, 4, 12, frame.count - 1] {
            let client = try RawClient(home.place)
            try client.send(Array(frame.prefix(length)))
            clients.append(client)
        }
        // The agent serves other clients meanwhile.
        try expectService(vault, "meanwhile")
        for client in clients { #expect(try client.readToEnd() == 0) }
        try expectService(vault, "after")
    }

    @Test func aByteAtATimeDoesNotStretchTheTime() throws {
        let agent = try LocalAgent(in: home) { $0.requestTime = .seconds(1) }
        let vault = try agent.unlockedVault()
        let client = try RawClient(home.place)
        // A request of a million bytes. Each byte is sent when the agent has taken the previous byte.
        try client.send([0, 0, 16, 0])
        let deadline = Deadline(after: .seconds(300))
        var sent = 0
        var hasEnded = false
        while !hasEnded, !deadline.hasPassed {
            guard client.isTaken else {
                sched_yield()
                continue
            }
            do {
                try client.send([1])
                sent += 1
            } catch {
                hasEnded = true
            }
        }
        // The connection did not end because a complete request was invalid.
        #expect(hasEnded && sent < 1 << 20, "\(sent)")
        try expectService(vault, "one")
    }

    @Test func commitsThatNeverEndTakeABoundedPart() throws {
        // The time limit also applies to honest clients, even on a busy machine.
        let agent = try LocalAgent(in: home) {
            $0.requestTime = .seconds(15)
            $0.commitLength = 4 << 20
        }
        let vault = try agent.unlockedVault()
        let big = Secret(repeatElement(UInt8(1), count: 1 << 20))
        let part = AgentOperation.commitPart(service: "good", changes: [.store(big, for: "big")])
        let clients = try (0..<3).map { _ in try RawClient(home.place) }
        for client in clients { try client.ask(part, home, count: 1) }
        // The parts that wait run into the time limit, and then there is room again.
        for client in clients { #expect(try client.readToEnd() == 0) }
        let changes = (0..<3).map { TokenChange.store(big, for: TokenKey("big \($0)")) }
        try vault.storage(service: "good").commit(changes)
        let more = (0..<6).map { TokenChange.store(big, for: TokenKey("more \($0)")) }
        let error = #expect(throws: TokenStorageError.self) {
            try vault.storage(service: "good").commit(more)
        }
        #expect(error?.code == .resourcesExhausted)
        #expect(try vault.storage(service: "good").list().items.count == 3)
        // Another request number, or another request, comes before the end of the commit.
        let client = try RawClient(home.place)
        try client.ask(.commitPart(service: "good", changes: [.delete("big 0")]), home, count: 2)
        #expect(try client.readToEnd() == 0)
        try expectService(vault, "after")
    }

    @Test func whoDoesNotReadIsEnded() throws {
        let agent = try LocalAgent(in: home) { $0.answerTime = .seconds(15) }
        let vault = try agent.unlockedVault()
        let big = Secret(repeatElement(UInt8(1), count: 1 << 20))
        try vault.storage(service: "good").store(big, for: "big")
        let clients = try (0..<4).map { _ in try RawClient(home.place) }
        for client in clients { try client.ask(.secret(service: "good", key: "big"), home, count: 20) }
        // The answers to these clients fill their sockets, and the agent waits. It still serves other
        // clients.
        try expectService(vault, "meanwhile")
        // After the time limit, these clients get only the bytes that the socket held.
        #expect(agent.server.waitForClients(1, atMost: .seconds(300)))
        for client in clients { #expect(try client.readToEnd() < 2 << 20) }
        #expect(try vault.storage(service: "good").secret(for: "big") == big)
    }

    @Test func aSubscriberWhoDoesNotReadIsEndedAndOthersAreTold() async throws {
        let agent = try LocalAgent(in: home) { $0.answerTime = .seconds(15) }
        let vault = try agent.unlockedVault()
        let deaf = try RawClient(home.place)
        try deaf.ask(.subscribe(service: "good"), home)
        let storage = AgentVault(vault).storage(service: "good")
        #expect(agent.server.waitForClients(2, atMost: .seconds(300)))
        var told = storage.changes().makeAsyncIterator()
        let name = String(repeating: "k", count: 1_000)
        // Each of these keys is reported, and together they do not fit into a socket.
        for round in 0..<8 {
            let changes = (0..<200).map {
                TokenChange.store(Secret([1]), for: TokenKey("\(round) \($0) \(name)"))
            }
            try await storage.commit(changes)
            for _ in 0..<200 { #expect(await told.next() != nil) }
        }
        // The subscriber that reads and the client with requests remain. The subscriber that does not read is
        // cut off.
        #expect(agent.server.waitForClients(2, atMost: .seconds(300)))
    }

    @Test func aFloodOfConnectionsEndsTheIdleOnes() throws {
        let agent = try LocalAgent(in: home) { $0.connections = 8 }
        let vault = try agent.unlockedVault()
        try expectService(vault, "before")
        var flood: [RawClient] = []
        for round in 0..<60 {
            flood.append(try RawClient(home.place))
            if round % 3 == 0 { try flood.last?.send([1, 2]) }
            #expect(agent.server.clients <= 8)
            // The agent may have ended the vault's idle connection. The caller does not notice.
            if round % 10 == 9 { try expectService(vault, "\(round)") }
        }
        try expectService(vault, "after")
    }

    /// A program that opens ever more connections takes room from itself.
    @Test func aFloodOfAnotherProcessEndsNoConnectionOfThisOne() throws {
        // Half of the connections are more than this process ever has.
        let agent = try LocalAgent(in: home) { $0.connections = 16 }
        let first = try (0..<3).map { _ in try RawClient(home.place) }
        // These connections are the oldest, and idle.
        for client in first { try client.ask(.vaults, home) }
        #expect(agent.server.waitForClients(3, atMost: .seconds(300)))
        let flood = """
            import socket, sys
            held = []
            for number in range(100):
                client = socket.socket(socket.AF_UNIX)
                client.connect(sys.argv[1])
                held.append(client)
            """
        let program = try Program.start(
            "/usr/bin/python3", ["-c", flood, "\(home.place.directory)/\(AgentEndpoint.socketName)"])
        #expect(Program.wait(for: program) == 0)
        // The agent accepts this client after the whole flood.
        try expectService(try agent.unlockedVault(), "one")
        for client in first { #expect(client.socket.arrival == .bytes) }
        for client in first { try client.ask(.vaults, home) }
    }

    @Test func aFloodOfSubscriptionsLeavesRoomForRequests() throws {
        let agent = try LocalAgent(in: home) {
            $0.connections = 12
            $0.subscriptions = 4
        }
        let vault = try agent.unlockedVault()
        var flood: [RawClient] = []
        for _ in 0..<30 {
            let client = try RawClient(home.place)
            try client.ask(.subscribe(service: "good"), home)
            flood.append(client)
            try expectService(vault, "one")
        }
        #expect(agent.server.clients <= 12)
    }

    /// Many small changes are few bytes on their way, and many in memory.
    @Test(arguments: [true, false])
    func commitsAreChargedByTheMemoryTheyTake(inParts: Bool) throws {
        let agent = try LocalAgent(in: home) { $0.commitLength = 1 << 20 }
        _ = try agent.unlockedVault()
        let small = (0..<16_000).map { TokenChange.delete(TokenKey("\($0)")) }
        let large = [TokenChange.store(Secret(repeatElement(UInt8(1), count: 1 << 19)), for: "large")]
        func commit(_ changes: [TokenChange]) -> [AgentOperation] {
            let whole = AgentOperation.commit(service: "good", changes: changes)
            guard inParts else { return [whole] }
            return [
                .commitPart(service: "good", changes: changes), .commit(service: "good", changes: []),
            ]
        }
        // The commit that is refused has fewer bytes than the accepted commit.
        #expect(try Samples.frame(commit(small)[0]).count < Samples.frame(commit(large)[0]).count)
        for _ in 0..<3 {
            let modest = try RawClient(home.place)
            try modest.ask(commit(large), home)
            #expect(try modest.answer() == .kind(.result))
            let greedy = try RawClient(home.place)
            try greedy.ask(commit(small), home)
            #expect(try greedy.answer() == .failure(.resourcesExhausted))
        }
    }

    @Test func aProcessHasItsShareOfTheRoomForCommits() throws {
        let agent = try LocalAgent(in: home) {
            $0.commitLength = 8 << 20
            $0.commitShare = 1 << 20
            $0.requestTime = .seconds(600)
        }
        _ = try agent.unlockedVault()
        let half = [TokenChange.store(Secret(repeatElement(UInt8(1), count: 700_000)), for: "half")]
        let waiting = try RawClient(home.place)
        try waiting.ask([.commitPart(service: "good", changes: half)], home)
        // The next commit waits once the agent has taken this part: until then there is room.
        let next = AgentOperation.commit(service: "good", changes: half)
        var answer = RawClient.Answer.kind(.result)
        let deadline = Deadline(after: .seconds(300))
        while answer == .kind(.result), !deadline.hasPassed {
            let other = try RawClient(home.place)
            try other.ask([next], home)
            answer = try other.answer()
        }
        #expect(answer == .failure(.resourcesExhausted))
        try waiting.ask(more: .commit(service: "good", changes: []), home)
        #expect(try waiting.answer() == .kind(.result))
        let last = try RawClient(home.place)
        try last.ask([next], home)
        #expect(try last.answer() == .kind(.result))
    }

    @Test func roomForCommitsIsKeptByProcess() {
        let budget = CommitBudget(10, share: 6)
        #expect(budget.take(6, for: 1) && !budget.take(1, for: 1))
        #expect(!budget.take(5, for: 2) && budget.take(4, for: 2) && !budget.take(1, for: 3))
        budget.release(6, of: 1)
        #expect(budget.take(6, for: 3) && !budget.take(1, for: 1))
        budget.release(6, of: 3)
        budget.release(4, of: 2)
        #expect(budget.take(6, for: 2) && budget.take(4, for: 1) && !budget.take(1, for: 3))
    }

    /// However fast they come: parts that are there already have no more time than others.
    @Test func partsBeyondTheirTimeAreLetGoOf() throws {
        let agent = try LocalAgent(in: home) { $0.requestTime = .zero }
        let vault = try agent.unlockedVault()
        let change = TokenChange.store(Secret([1]), for: "k")
        let client = try RawClient(home.place)
        // These requests are few enough to arrive together.
        try client.ask(
            [
                .commitPart(service: "good", changes: [change]),
                .commit(service: "good", changes: []),
            ], home)
        #expect(try client.answer() == .end)
        #expect(try vault.storage(service: "good").list().items.isEmpty)
    }

    /// The agent treats clients that do not read like clients that do not ask.
    @Test func clientsThatDoNotReadMakeRoom() throws {
        let agent = try LocalAgent(in: home) {
            $0.connections = 4
            $0.answerTime = .seconds(600)
        }
        let vault = try agent.unlockedVault()
        let big = Secret(repeatElement(UInt8(1), count: 1 << 20))
        try vault.storage(service: "good").store(big, for: "big")
        vault.close()
        #expect(agent.server.waitForClients(0, atMost: .seconds(300)))
        let deaf = try (0..<4).map { _ in try RawClient(home.place) }
        for client in deaf { try client.ask(.secret(service: "good", key: "big"), home, count: 20) }
        // The client asks again while there is no room.
        try expectService(agent.vault(), "one")
        #expect(agent.server.clients <= 4)
        withExtendedLifetime(deaf) {}
    }
}
