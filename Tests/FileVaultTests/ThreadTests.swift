import HookedStorage
import Synchronization
import Testing
import TokenVault
import TokenVaultPlatform

/// On which thread the calls of a vault touch the disk.
@Suite struct ThreadTests {
    /// Remembers the threads that read and wrote.
    final class Recorder: Sendable {
        private let threads = Mutex<(readers: Set<Int32>, writers: Set<Int32>)>(([], []))
        var readers: Set<Int32> { threads.withLock { $0.readers } }
        var writers: Set<Int32> { threads.withLock { $0.writers } }
        func forget() { threads.withLock { $0 = ([], []) } }
        func read() { _ = threads.withLock { $0.readers.insert(ProcessFacts.thread) } }
        func wrote() { _ = threads.withLock { $0.writers.insert(ProcessFacts.thread) } }
    }

    final class RecordingDirectory: ForwardingDirectory {
        let base: any DiskDirectory
        let recorder: Recorder

        init(_ base: any DiskDirectory, _ recorder: Recorder) {
            self.base = base
            self.recorder = recorder
        }

        func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
            RecordingFile(try base.open(name, access), recorder)
        }
    }

    final class RecordingFile: ForwardingFile {
        let base: any DiskFile
        let recorder: Recorder

        init(_ base: any DiskFile, _ recorder: Recorder) {
            self.base = base
            self.recorder = recorder
        }

        func read(_ count: Int, at offset: Int) throws(SystemFailure) -> [UInt8] {
            recorder.read()
            return try base.read(count, at: offset)
        }
        func write(_ bytes: [UInt8], at offset: Int) throws(SystemFailure) {
            recorder.wrote()
            try base.write(bytes, at: offset)
        }
        func synchronize() throws(SystemFailure) {
            recorder.wrote()
            try base.synchronize()
        }
    }

    @Test func readsStayOnTheCallersThreadAndWritesLeaveIt() async throws {
        let sandbox = try Sandbox()
        let recorder = Recorder()
        let vault = try BlockingFileVault.create(
            at: VaultLocation(
                directory: RecordingDirectory(try PosixDirectory(sandbox.path), recorder), name: "v.vault",
                state: nil, path: sandbox.path),
            unlockMethod: keyFile, configuration: sandbox.configuration)
        let storage = FileTokenStorage(vault, service: "threads")

        // After a wait, a task may continue on another thread, so the test reads the caller's thread again.
        var caller = ProcessFacts.thread
        recorder.forget()
        try await storage.store(token: "fake-token", for: "key")
        #expect(!recorder.writers.isEmpty && !recorder.writers.contains(caller))

        recorder.forget()
        caller = ProcessFacts.thread
        let token = try await storage.retrieve(for: "key")
        #expect(recorder.readers == [caller] && recorder.writers.isEmpty)
        #expect(token == "fake-token")

        // The work of a list is unbounded, so it does not block the caller's thread.
        recorder.forget()
        caller = ProcessFacts.thread
        #expect(try await storage.list().items.count == 1)
        #expect(recorder.readers.count == 1 && !recorder.readers.contains(caller))

        recorder.forget()
        caller = ProcessFacts.thread
        try storage.blocking.store(token: "fake-token-2", for: "key")
        #expect(try storage.blocking.retrieve(for: "key") == "fake-token-2")
        #expect(recorder.readers == [caller] && recorder.writers == [caller])
    }
}
