import Glibc
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

/// Many clients at once, a sixteenth of them misbehaving, for a minute.
@Suite(.tags(.endurance), .from(.all)) struct LoadTests {
    private static let clients = 64
    private static let misbehaving = 4
    private static let big = TokenKey("big")

    /// What the clients have done.
    private struct Tally {
        var rounds = Array(repeating: 0, count: clients)
        var errors: [String] = []
        var over = 0
    }

    @Test func sixtyFourClientsForAMinuteAreServedInMemoryThatStaysFlat() throws {
        let agent = try TestAgent()
        let vault = try agent.unlockedVault()
        try vault.storage(service: "load").store(
            Secret(repeatElement(UInt8(1), count: 1 << 20)), for: Self.big)
        let tally = Monitor(Tally())
        let end = Deadline(after: .seconds(60))
        for number in 0..<Self.clients {
            WorkerThread(name: "client \(number)").run {
                let vault = agent.vault()
                while !end.hasPassed {
                    do {
                        if number < Self.misbehaving {
                            try Self.misbehave(number, agent)
                        } else {
                            try Self.use(vault, as: number)
                        }
                        tally.announce { $0.rounds[number] += 1 }
                    } catch {
                        // The agent cuts off clients that misbehave.
                        guard number >= Self.misbehaving else { continue }
                        tally.announce { $0.errors.append("\(error)") }
                    }
                }
                tally.announce { $0.over += 1 }
            }
        }
        // Measures once all clients have run for a while.
        _ = tally.wait(atMost: .seconds(20)) { $0.over == Self.clients ? () : nil }
        let before = try agent.process.fact("RssAnon")
        let outcome = tally.wait { $0.over == Self.clients ? $0 : nil }
        let after = try agent.process.fact("RssAnon")
        let errors = outcome.errors
        #expect(errors.isEmpty, "\(errors.count): \(errors.prefix(3))")
        #expect(outcome.rounds.allSatisfy { $0 > 0 }, "\(outcome.rounds)")
        // In KiB. Stacks and answers of a million bytes come and go. Memory kept for every request would be
        // far more.
        let rounds = outcome.rounds.reduce(0, +)
        print("load:", rounds, before, after)
        #expect(after < before + 16 << 10, "\(before) KiB, then \(after) KiB, after \(rounds) rounds")
        #expect(try vault.storage(service: "load").secret(for: Self.big)?.count == 1 << 20)
    }

    /// What a client does all day.
    private static func use(_ vault: BlockingAgentVault, as number: Int) throws {
        let storage = vault.storage(service: "client \(number)")
        let token = "fake \(Int.random(in: 0...1_000_000))"
        try storage.store(token: token, for: "key")
        for _ in 0..<10 { #expect(try storage.retrieve(for: "key") == token) }
        #expect(try storage.list().items.map(\.key) == ["key"])
        #expect(try storage.delete(for: "key"))
        #expect(try storage.retrieve(for: "key") == nil)
    }

    private static func misbehave(_ number: Int, _ agent: TestAgent) throws {
        let client = try RawClient(agent.place)
        switch number {
        case 0: try client.send([0xff, 0xff, 0xff, 0xff] + Array(repeating: 7, count: 100))
        case 1: try client.send(Array(try Samples.frame(.state).dropLast()))
        case 2: try client.ask(.secret(service: "load", key: big), agent.home, count: 20)
        default: return
        }
        // Waits until the agent ends the connection. The client with many requests leaves without reading an
        // answer.
        if number != 2 { _ = try client.readToEnd() }
    }
}
