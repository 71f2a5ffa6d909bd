import Glibc
import Synchronization
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

/// What an agent leaves that is killed while clients write.
@Suite(.tags(.crash, .endurance), .from(.all)) struct SuddenEndTests {
    /// One client that stores ever greater numbers under a key of its own.
    private final class Writer: Sendable {
        let key: TokenKey
        struct Progress {
            /// The last number that was acknowledged, and the last one that was sent.
            var acknowledged: Int
            var sent: Int
            var isOver = false
        }

        let progress: Monitor<Progress>

        init(_ key: TokenKey, after last: Int) {
            self.key = key
            progress = Monitor(Progress(acknowledged: last, sent: last))
        }

        /// Stores until the agent is gone. Returns what ended it.
        func run(_ storage: AgentTokenStorage.Blocking) -> TokenStorageError? {
            while true {
                let number = progress.withLock { progress in
                    progress.sent += 1
                    return progress.sent
                }
                do throws(TokenStorageError) {
                    try storage.store(Secret(utf8: "fake \(number)"), for: key)
                } catch {
                    progress.announce { $0.isOver = true }
                    return error
                }
                progress.announce { $0.acknowledged = number }
            }
        }
    }

    @Test func noAcknowledgedWriteIsLostInFiveHundredKills() throws {
        let home = try TestHome()
        var last = [0, 0]
        var cutShort = 0
        for round in 0..<500 {
            let agent = try TestAgent(in: home)
            let vault = agent.vault()
            // A new agent has nothing of the previous one.
            #expect(try !vault.isHeld())
            try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
            let storage = vault.storage(service: "load")
            let writers = last.enumerated().map { Writer(TokenKey("writer \($0)"), after: $1) }
            let ended = Monitor([TokenStorageError?]())
            for writer in writers {
                WorkerThread(name: "writer").run {
                    let error = writer.run(storage)
                    ended.announce { $0.append(error) }
                }
            }
            // The kill comes somewhere in the writes that follow.
            let wanted = last[0] + Int.random(in: 0...8)
            writers[0].progress.wait { $0.acknowledged >= wanted || $0.isOver ? () : nil }
            agent.process.end(SIGKILL)
            let errors = ended.wait { $0.count == writers.count ? $0 : nil }
            for error in errors {
                #expect(
                    error.map { [.outcomeUnknown, .unavailable].contains($0.code) } == true, "\(error as Any)"
                )
                if error?.code == .outcomeUnknown { cutShort += 1 }
            }
            vault.close()
            let file = try home.open()
            for (index, writer) in writers.enumerated() {
                let found = try file.storage(service: "load").retrieve(for: writer.key)
                let number = found.flatMap { Int($0.dropFirst(5)) } ?? 0
                let progress = writer.progress.withLock { $0 }
                #expect((progress.acknowledged...progress.sent).contains(number), "round \(round)")
                last[index] = number
            }
            if round % 50 == 49 { _ = try file.verify() }
            file.close()
        }
        // Some kills interrupted a write.
        #expect(cutShort > 0)
    }
}
