import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent
import VaultAgentServer

/// Agents that do not do what they say, or say nothing: a client is neither misled nor kept.
@Suite(.tags(.programs), .from(.usual)) struct LyingAgentTests {
    let home: TestHome

    init() throws { home = try TestHome() }

    /// Answers each connection with what `body` sends, until the test ends.
    private func agent(_ body: @escaping @Sendable (UnixSocket) throws -> Void) throws -> FakeAgent {
        try FakeAgent(at: home.place, body)
    }

    private func send(_ socket: UnixSocket, _ write: (inout WireWriter) -> Void) throws {
        let buffer = WipedBuffer(capacity: 64)
        var writer = WireWriter(buffer)
        write(&writer)
        try buffer.send(to: socket, until: Deadline(after: .seconds(300)))
    }

    /// A client that took a full agent for a missing one would report the vault as locked, or open the file
    /// directly.
    @Test func anAgentThatIsFullIsNotTakenForNone() throws {
        let full = try agent { socket in
            try send(socket) { writer in
                writer.begin(.goodbye, id: 0)
                _ = writer.end()
            }
            socket.end()
        }
        let vault = BlockingAgentVault(at: home.vault, agent: home.place, timeout: .seconds(1))
        #expect(isCutOff { try vault.lock() })
        #expect(isCutOff { try vault.release() })
        #expect(isCutOff { try vault.isHeld() })
        let either = AgentOrFileVault(at: home.vault, agent: home.place, timeout: .seconds(1)) {
            [home] () throws(TokenStorageError) in
            let vault = try BlockingFileVault.open(at: home.vault, configuration: home.configuration)
            try vault.unlock(with: TestHome.keyFile)
            return vault
        }
        #expect(isCutOff { try either.storage(service: "s").blocking.retrieve(for: "key") })
        full.end()
        #expect(try !vault.lock())
        #expect(try either.storage(service: "s").blocking.retrieve(for: "key") == nil)
    }

    @Test(arguments: [true, false])
    func anAnswerThatNeverEndsTimesOut(_ isGreeting: Bool) throws {
        let talking = try agent { socket in
            try send(socket) { $0.appendHello() }
            while true {
                try send(socket) { writer in
                    if isGreeting {
                        writer.appendHello()
                    } else {
                        // An empty page of a list, which more pages may follow.
                        writer.begin(.part, id: 1)
                        _ = writer.end()
                    }
                }
            }
        }
        let vault = BlockingAgentVault(at: home.vault, agent: home.place, timeout: .seconds(1))
        // No agent sends a second greeting. Pages may come for ever.
        if isGreeting {
            #expect(isCutOff { try vault.storage(service: "s").list() })
        } else {
            #expect(code { try vault.storage(service: "s").list() } == .timedOut)
        }
        talking.end()
    }
}

/// Whatever listens in the agent's place.
final class FakeAgent: Sendable {
    private let waker: WakeEvent
    private let isOver = Monitor(false)

    init(at place: AgentEndpoint, _ body: @escaping @Sendable (UnixSocket) throws -> Void) throws {
        let listening = try AgentListening(at: place)
        let waker = try WakeEvent()
        self.waker = waker
        WorkerThread(name: "fake-agent").run { [isOver] in
            while let socket = try? listening.listener.accept(orSignal: nil, orWake: waker) {
                try? body(socket)
            }
            _ = listening.remove()
            isOver.announce { $0 = true }
        }
    }

    /// Listens no more.
    func end() {
        waker.wake()
        isOver.wait { $0 ? () : nil }
    }
}

/// Whether `body` fails for want of an agent that answers, which is not to have none.
private func isCutOff(_ body: () throws -> Any?) -> Bool {
    code(body).map { [.unavailable, .timedOut].contains($0) } ?? false
}

private func code(_ body: () throws -> Any?) -> TokenStorageError.Code? {
    do { _ = try body() } catch { return (error as? TokenStorageError)?.code }
    return nil
}
