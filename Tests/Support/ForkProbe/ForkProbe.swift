import Glibc
import Synchronization
import SystemPackage
import TokenVault
import TokenVaultCrypto
import TokenVaultPlatform

/// A process that forks, which Swift does not offer.
///
/// `ForkProbe use VAULT STATE ROUNDS` forks while other threads use the vault, and looks at what the child
/// has of it. `ForkProbe leave DIRECTORY NAME` locks the file, forks, prints the child's number and ends at
/// once. Only the child could then still hold the lock.
@main
struct ForkProbe {
    typealias Fork = @convention(c) () -> pid_t

    static func main() {
        let arguments = CommandLine.arguments
        guard let symbol = dlsym(nil, "fork") else { fail("no fork") }
        let fork = unsafeBitCast(symbol, to: Fork.self)
        do {
            switch (arguments.dropFirst().first, arguments.count) {
            case ("use", 5):
                guard let rounds = Int(arguments[4]) else { fail("no number") }
                try use(arguments[2], arguments[3], rounds, fork)
            case ("leave", 4):
                let file = try PosixDirectory(FilePath(arguments[2])).open(arguments[3], .readWrite)
                guard try file.tryLock(.exclusive) else { fail("the file is locked") }
                var ends: [CInt] = [0, 0]
                guard pipe(&ends) == 0 else { fail("no pipe") }
                var byte: UInt8 = 1
                let child = fork()
                if child == 0 {
                    alarm(60)
                    write(ends[1], &byte, 1)
                    while true { pause() }
                }
                // Waits until the child has come out of the fork.
                while read(ends[0], &byte, 1) < 0, errno == EINTR {}
                print(child)
                fflush(nil)
                withExtendedLifetime(file) { _exit(0) }
            default: fail("usage: see the source")
            }
        } catch {
            fail("\(error)")
        }
    }

    static func fail(_ reason: String) -> Never {
        print("failed \(reason)")
        exit(1)
    }

    static let method = UnlockMethod.keyFile(Secret(utf8: "not a real key: 0123456789abcdef0123456789abcdef"))

    static func open(_ path: String, _ state: String) throws -> BlockingFileVault {
        let vault = try BlockingFileVault.open(
            at: FilePath(path), configuration: FileVaultConfiguration(stateDirectory: FilePath(state)))
        try vault.unlock(with: method)
        return vault
    }

    static func use(_ path: String, _ state: String, _ rounds: Int, _ fork: Fork) throws {
        let vault = try open(path, state)
        let key = try SymmetricKey.random()
        guard let pages = GuardedPages(count: 1) else { fail("no pages") }
        pages.bytes[5] = 7
        var changes: TokenChanges? = FileTokenStorage(vault, service: "s").changes()
        try vault.lockAutomatically(.after(.seconds(600)))
        let timer = ObjectIdentifier(LockTimer.shared)
        // The first use sets everything up before the forks.
        _ = try usesOwn(path, state)
        let closed = try open(path, state)
        closed.close()
        _ = firstAnswered(by: closed)
        let isOver = Atomic(false)
        let threads = (0..<3).map { WorkerThread(name: "user-\($0)") }
        // About half of the forks come while these threads hold the lock of a change reader or of the timer.
        let hub = ChangeHub()
        var other: TokenChanges? = hub.subscribe(service: "s")
        let busy = (0..<2).map { WorkerThread(name: "busy-\($0)") }
        let left = Monitor(threads.count + busy.count)
        for thread in busy {
            thread.run {
                while !isOver.load(ordering: .relaxed) {
                    hub.publish(service: "s", .stored("key", Generation(rawValue: 1)))
                    _ = hub.isObserved
                }
                left.announce { $0 -= 1 }
            }
        }
        for (number, thread) in threads.enumerated() {
            thread.run {
                let storage = vault.storage(service: "s")
                while !isOver.load(ordering: .relaxed) {
                    _ = try? storage.store(token: "fake", for: TokenKey("key-\(number)"))
                    for _ in 0..<20 { _ = try? storage.retrieve(for: TokenKey("key-\(number)")) }
                    _ = try? vault.status()
                }
                left.announce { $0 -= 1 }
            }
        }
        for round in 0..<rounds {
            let child = fork()
            if child == 0 {
                // The alarm ends a call that waits for ever.
                alarm(30)
                if let answered = firstAnswered(by: vault) { _exit(CInt(10 + answered)) }
                if key.withBytes({ _ in true }) != nil { _exit(2) }
                if pages.isThere || pages.bytes.contains(where: { $0 != 0 }) { _exit(3) }
                vault.lock()
                vault.close()
                // The child drops the parent's readers.
                changes = nil
                other = nil
                // A timer of the parent has no thread in the child, so it would lock nothing.
                if ObjectIdentifier(LockTimer.shared) == timer { _exit(5) }
                _exit((try? usesOwn(path, state)) == true ? 0 : 4)
            }
            var status: CInt = 0
            while waitpid(child, &status, 0) < 0, errno == EINTR {}
            guard status == 0 else { fail("round \(round): status \(status)") }
        }
        isOver.store(true, ordering: .relaxed)
        left.wait { $0 == 0 ? () : nil }
        guard try vault.lockState() == .unlocked, pages.bytes[5] == 7,
            try vault.storage(service: "s").retrieve(for: "own") == "fake", try vault.verify().isClean
        else { fail("the parent has lost something") }
        withExtendedLifetime((changes, other)) {}
        print("done \(rounds)")
    }

    /// Whether a vault that is opened in this process works.
    static func usesOwn(_ path: String, _ state: String) throws -> Bool {
        let vault = try open(path, state)
        let storage = vault.storage(service: "s")
        try storage.store(token: "fake", for: "own")
        let isThere = try storage.retrieve(for: "own") == "fake"
        vault.close()
        return isThere
    }

    /// The number of the first call that says something else than that the vault is closed.
    static func firstAnswered(by vault: BlockingFileVault) -> Int? {
        let storage = vault.storage(service: "s")
        let calls: [() throws -> Void] = [
            { _ = try storage.retrieve(for: "own") },
            { _ = try storage.list() },
            { try storage.store(token: "x", for: "own") },
            { try storage.delete(for: "own") },
            { try storage.deleteAll() },
            { _ = try vault.status() },
            { _ = try vault.lockState() },
            { _ = try vault.slots() },
            { _ = try vault.devices() },
            { _ = try vault.verify() },
            { _ = try vault.compact() },
            { try vault.unlock(with: method) },
            { try vault.lockAutomatically(nil) },
            { _ = try vault.listAllServices() },
            { _ = try vault.addSlot(method) },
        ]
        for (number, call) in calls.enumerated() {
            do {
                try call()
                return number
            } catch {
                guard let error = error as? TokenStorageError, error.code == .closed else { return number }
            }
        }
        _ = (vault.identifier, storage.supportedPolicies, storage.defaultPolicy, vault.automaticLock)
        return nil
    }
}
