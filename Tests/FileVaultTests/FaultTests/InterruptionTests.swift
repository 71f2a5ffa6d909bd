import Glibc
import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

/// Signals interrupt system calls (`EINTR`): no call fails by it, and nothing is written twice or in part.
@Suite struct InterruptionTests {
    @Test func signalsDoNotDisturb() throws {
        let parent = FilePath(String(cString: getenv("TMPDIR") ?? strdup("/tmp")))
        let path = parent.appending("interrupted-\(getpid())-\(UInt32.random(in: 0...UInt32.max))")
        try PosixDirectory.makeAll(path)
        defer { removeTree(path) }
        let vault = try BlockingFileVault.create(
            at: path.appending("test.vault"), unlockMethod: SimulatedVault.key("first"),
            configuration: FileVaultConfiguration(stateDirectory: path.appending("state")))
        let storage = vault.storage(service: SimulatedVault.service)

        // Without SA_RESTART, the signal interrupts every call that can be interrupted.
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { _ in }
        var former = sigaction()
        sigaction(SIGUSR2, &action, &former)
        defer { sigaction(SIGUSR2, &former, nil) }

        let target = pthread_self()
        let stage = Monitor((isRunning: true, signals: 0))
        let disturber = WorkerThread(name: "disturber")
        disturber.run {
            while stage.withLock({ $0.isRunning }) {
                pthread_kill(target, SIGUSR2)
                stage.announce { $0.signals += 1 }
                sched_yield()
            }
            stage.announce { $0.signals = -1 }
        }
        defer {
            // No signal may arrive after the handler is gone.
            stage.withLock { $0.isRunning = false }
            stage.wait { $0.signals == -1 ? () : nil }
        }

        stage.wait { $0.signals > 0 ? () : nil }
        var generation = Generation(rawValue: 0)
        for round in 0..<60 {
            let text = VaultWorkload.text("value \(round)", 3_000)
            let next = try storage.store(token: text, for: "key")
            #expect(next > generation)
            generation = next
            #expect(try storage.retrieve(for: "key") == text)
            if round % 20 == 19 { _ = try vault.compact() }
        }
        #expect(try vault.verify().isClean)
    }
}
