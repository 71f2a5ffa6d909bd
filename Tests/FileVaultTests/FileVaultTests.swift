import Glibc
import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// A directory of its own for a test's vault and state, removed when the test ends.
final class Sandbox {
    let path: FilePath

    init() throws {
        var template = Array("/tmp/tokenvault-test-XXXXXX".utf8CString)
        let made = try #require(mkdtemp(&template))
        path = FilePath(platformString: made)
    }

    deinit { removeTree(path) }

    var vault: FilePath { path.appending("vaults/test.vault") }
    var configuration: FileVaultConfiguration {
        var configuration = FileVaultConfiguration(
            stateDirectory: path.appending("state"), lockTimeout: .seconds(300),
            keyDerivationCost: .minimum)
        configuration.passwordHash = RememberedHashes.derive
        return configuration
    }
}

let keyFile = UnlockMethod.keyFile(Secret(utf8: "not a real key: 0123456789abcdef0123456789abcdef"))

@Suite struct FileVaultTests {
    @Test func whatIsStoredIsThereAfterReopening() throws {
        let sandbox = try Sandbox()
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let storage = vault.storage(service: "com.example")
        let first = try storage.store(token: "fake-token-1", for: "access")
        let second = try storage.store(token: "fake-token-2", for: "access")
        #expect(second > first)
        try storage.store(token: "fake-refresh", for: "refresh")
        #expect(try storage.retrieve(for: "access") == "fake-token-2")
        #expect(try storage.delete(for: "refresh"))
        vault.close()

        let again = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        #expect(throws: TokenStorageError.self) {
            try again.storage(service: "com.example").retrieve(for: "access")
        }
        try again.unlock(with: keyFile)
        #expect(try again.storage(service: "com.example").retrieve(for: "access") == "fake-token-2")
        #expect(try again.storage(service: "com.example").retrieve(for: "refresh") == nil)
        let report = try again.verify()
        #expect(report.isClean, "\(report)")
        #expect(try again.status().rollbackProtection == .anchored)
    }

    @Test func aWrongKeyIsRefused() throws {
        let sandbox = try Sandbox()
        _ = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let vault = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        let error = #expect(throws: TokenStorageError.self) {
            try vault.unlock(with: .keyFile(Secret(utf8: "another key that is not real 0123456789")))
        }
        #expect(error?.code == .wrongPassphrase)
    }

    @Test func destroyingACopySparesTheOriginalsKeys() throws {
        let sandbox = try Sandbox()
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        try vault.storage(service: "com.example").store(token: "fake-token", for: "access")
        vault.close()
        let copy = try PosixCopy(of: sandbox.vault, state: sandbox.path.appending("state"))
        let elsewhere = sandbox.vault.removingLastComponent().appending("copy.vault")
        try copy.write(to: "copy.vault")
        try BlockingFileVault.destroy(at: elsewhere, configuration: sandbox.configuration)
        let again = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try again.unlock(with: keyFile)
        #expect(try again.storage(service: "com.example").retrieve(for: "access") == "fake-token")
        again.close()
        try BlockingFileVault.destroy(at: sandbox.vault, configuration: sandbox.configuration)
        #expect(try PosixDirectory(sandbox.path.appending("state")).names().isEmpty)
    }

    /// A store and a delete of one key in one group erase a body in the last written frames. The next opener
    /// looks at those frames closest. The vault is too large to be compacted instead.
    @Test(arguments: [4, 5_000]) func oneGroupStoresAndDeletes(length: Int) throws {
        let sandbox = try Sandbox()
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let storage = vault.storage(service: "group")
        let filling = Secret([UInt8](repeating: 1, count: 300_000))
        for number in 0..<5 { try storage.store(filling, for: "filling \(number)") }
        let session = try vault.session()
        let outcomes = Mutex<[Result<Generation?, TokenStorageError>]>([])
        let changes: [TokenChange] = [
            .store(Secret(utf8: "one"), for: "first"),
            .store(Secret([UInt8](repeating: 2, count: length)), for: "temporary"),
            .delete("temporary"),
            .store(Secret(utf8: "two"), for: "second"),
        ]
        let requests = changes.map { change in
            WriteRequest(
                prepare: session.preparation(service: "group", changes: [change], existed: CommitFacts())
            ) { result in outcomes.withLock { $0.append(result) } }
        }
        session.log.perform(requests)
        #expect(outcomes.withLock { $0.allSatisfy { (try? $0.get()) != nil } && $0.count == 4 })
        vault.close()
        let again = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try again.unlock(with: keyFile)
        #expect(try again.storage(service: "group").retrieve(for: "first") == "one")
        #expect(try again.storage(service: "group").retrieve(for: "temporary") == nil)
        #expect(try again.storage(service: "group").retrieve(for: "second") == "two")
        #expect(try again.verify().isClean)
    }

    /// A commit of many changes is made in parts, on several threads.
    @Test func aCommitOfManyChangesIsOne() throws {
        let sandbox = try Sandbox()
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let storage = vault.storage(service: "many")
        let count = 1_501
        for number in stride(from: 0, to: count, by: 100) {
            try storage.store(Secret(utf8: "old"), for: "item-\(number)")
        }
        func changes(expecting last: TokenChange.Expectation) -> [TokenChange] {
            (0..<count).map { number in
                let key = TokenKey("item-\(number)")
                if number == count - 1 {
                    return .store(Secret(utf8: "new"), for: key, expecting: last)
                }
                if number == 700 { return .rename(key, to: "renamed") }
                if number.isMultiple(of: 300) { return .delete(key) }
                return .store(Secret(utf8: "\(number)"), for: key)
            }
        }
        let before = try storage.list()
        #expect {
            try storage.commit(changes(expecting: .generation(Generation(rawValue: 1))))
        } throws: { ($0 as? TokenStorageError)?.code == .conflict }
        #expect(try storage.list() == before)

        let commit = try storage.commit(changes(expecting: .any))
        #expect(commit.existed == (0..<count).map { $0.isMultiple(of: 100) })
        vault.close()
        let again = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try again.unlock(with: keyFile)
        let items = again.storage(service: "many")
        for number in 0..<count {
            let text = try items.retrieve(for: TokenKey("item-\(number)"))
            switch number {
            case count - 1: #expect(text == "new")
            case 700: #expect(text == nil)
            case _ where number.isMultiple(of: 300): #expect(text == nil)
            default: #expect(text == "\(number)")
            }
        }
        #expect(try items.retrieve(for: "renamed") == "old")
        let generations = Set(try items.list().items.map(\.generation))
        #expect(generations == [try #require(commit.generation)])
        #expect(try again.verify().isClean)
    }

    /// A commit that fills a group, and others that wait behind it and ask for what it stored.
    @Test func aCommitThatFillsAGroupIsFollowedByOthers() throws {
        let sandbox = try Sandbox()
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let session = try vault.session()
        let outcomes = Mutex<[Result<Generation?, TokenStorageError>]>([])
        let large = Secret([UInt8](repeating: 1, count: 1 << 20))
        let commits: [[TokenChange]] = [
            [.store(Secret(utf8: "one"), for: "first")],
            (0..<10).map { .store(large, for: "large \($0)") },
            [.rename("large 3", to: "moved"), .delete("large 4")],
            [.rename("first", to: "last")],
        ]
        let requests = commits.map { changes in
            WriteRequest(
                prepare: session.preparation(service: "group", changes: changes, existed: CommitFacts())
            ) { result in outcomes.withLock { $0.append(result) } }
        }
        session.log.perform(requests)
        #expect(outcomes.withLock { $0.allSatisfy { (try? $0.get()) != nil } && $0.count == 4 })
        let storage = vault.storage(service: "group")
        #expect(try storage.secret(for: "moved") == large)
        #expect(try storage.secret(for: "large 3") == nil)
        #expect(try storage.secret(for: "large 4") == nil)
        #expect(try storage.retrieve(for: "last") == "one")
        #expect(try storage.list().items.count == 10)
        #expect(try vault.verify().isClean)
    }

    /// A handle that was open before another one changed the slots.
    @Test func aLongLivedHandleFollowsTheSlots() throws {
        let sandbox = try Sandbox()
        let policy = AccessPolicy.whenPasscodeSetThisDeviceOnly
        let early = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let other = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try other.unlock(with: keyFile)
        let slot = try other.addSlot(.passphrase(Secret(utf8: "not a real passphrase")))
        try other.storage(service: "s").store(token: "secret", for: "k", policy: policy)
        // The early handle cannot read the item, and must not report it as absent.
        let refusal = #expect(throws: TokenStorageError.self) {
            try early.storage(service: "s").retrieve(for: "k")
        }
        #expect(refusal?.code == .notPermitted)
        #expect(throws: TokenStorageError.self) {
            try early.storage(service: "s").compareAndStore(Secret(utf8: "over it"), for: "k", expected: nil)
        }
        let late = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try late.unlock(with: .passphrase(Secret(utf8: "not a real passphrase")))
        #expect(try late.storage(service: "s").retrieve(for: "k") == "secret")
        try other.removeSlot(slot.id)
        // Without the passphrase the class is gone, so no store into it may succeed.
        let stored = #expect(throws: TokenStorageError.self) {
            try late.storage(service: "s").store(token: "lost", for: "k2", policy: policy)
        }
        #expect(stored?.code == .unsupportedPolicy)
        #expect(try late.storage(service: "s").retrieve(for: "k") == nil)
    }

    @Test func verifyChangesNothing() throws {
        let sandbox = try Sandbox()
        _ = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let file = try PosixDirectory(sandbox.vault.removingLastComponent()).open("test.vault", .readWrite)
        var byte = try file.read(1, at: 100)
        byte[0] ^= 1
        try file.write(byte, at: 100)
        let vault = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try vault.unlock(with: keyFile, repairing: false)
        #expect(try !vault.verify().isClean)
        #expect(try file.read(1, at: 100) == byte)
        vault.close()
        let mended = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try mended.unlock(with: keyFile)
        #expect(try mended.verify().isClean && !mended.status().notes.isEmpty)
    }

    /// A write that ended early and was never acknowledged: cut between any two bytes of a sector. There
    /// is no anchor here.
    @Test(arguments: Array(stride(from: 200, to: 720, by: 40))) func aWriteThatEndedEarlyIsTorn(length: Int)
        throws
    {
        let sandbox = try Sandbox()
        var configuration = sandbox.configuration
        configuration.stateDirectory = nil
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: configuration)
        let storage = vault.storage(service: "s")
        try storage.store(token: "first", for: "first")
        try storage.store(Secret([UInt8](repeating: 3, count: length)), for: "second")
        let end = try vault.session().log.state.withLock { $0.tail }
        vault.close()
        let file = try PosixDirectory(sandbox.vault.removingLastComponent()).open("test.vault", .readWrite)
        try file.write([UInt8](repeating: 0, count: 24), at: end - 24)
        let again = try BlockingFileVault.open(at: sandbox.vault, configuration: configuration)
        try again.unlock(with: keyFile)
        #expect(try again.storage(service: "s").retrieve(for: "first") == "first")
        #expect(try again.storage(service: "s").retrieve(for: "second") == nil)
        try again.storage(service: "s").store(token: "third", for: "third")
        #expect(try again.verify().isClean)
    }
}
