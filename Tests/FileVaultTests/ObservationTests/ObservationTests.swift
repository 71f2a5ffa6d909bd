import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// What one handle of a vault tells of what another one does: neither knows of the other, as two processes.
@Suite(.timeLimit(.minutes(20))) struct ObservationTests {
    private let sandbox: Sandbox
    private let own: BlockingFileVault
    private let other: BlockingFileVault

    init() throws {
        sandbox = try Sandbox()
        other = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        own = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try own.unlock(with: keyFile)
    }

    private var theirs: FileTokenStorage.Blocking { other.storage(service: "watched") }

    private func changes(of vault: BlockingFileVault) -> TokenChanges.Iterator {
        FileTokenStorage(vault, service: "watched").changes().makeAsyncIterator()
    }

    /// The same vault, looked at only when it is used.
    private func openedWithoutNotices(
        every interval: Duration = .seconds(86_400)
    ) throws -> BlockingFileVault {
        var configuration = sandbox.configuration
        configuration.watchInterval = interval
        let directory = try PosixDirectory(sandbox.vault.removingLastComponent())
        let vault = try BlockingFileVault.open(
            at: VaultLocation(
                directory: ThreadTests.RecordingDirectory(directory, ThreadTests.Recorder()),
                name: "test.vault", state: nil, path: sandbox.vault),
            configuration: configuration)
        try vault.unlock(with: keyFile)
        return vault
    }

    @Test func storesDeletionsAndRenamesOfOthersAreTold() async throws {
        var events = changes(of: own)
        let stored = try theirs.store(token: "fake", for: "key")
        #expect(await events.next() == .stored("key", stored))
        let renamed = try #require(try theirs.commit([.rename("key", to: "new")]).generation)
        let two = [await events.next(), await events.next()]
        #expect(Set(two) == [.deleted("key", renamed), .stored("new", renamed)])
        let deleted = try #require(try theirs.commit([.delete("new")]).generation)
        #expect(await events.next() == .deleted("new", deleted))
        #expect(VaultWatcher.shared.usesInterval(ObjectIdentifier(own)) == false)
    }

    @Test func anotherFileInTheVaultsPlaceIsFollowed() async throws {
        var events = changes(of: own)
        for round in 0..<20 {
            let key = TokenKey("key-\(round)")
            _ = try other.compact()
            let stored = try theirs.store(token: "fake", for: key)
            #expect(await events.next() == .stored(key, stored))
            // Every deletion in a small vault compacts it.
            let deleted = try #require(try theirs.commit([.delete(key)]).generation)
            #expect(await events.next() == .deleted(key, deleted))
        }
    }

    @Test func aDeletionBeforeTheItemsMovedIsTold() async throws {
        let own = try openedWithoutNotices()
        try theirs.store(token: "fake", for: "key", policy: .afterFirstUnlock)
        _ = try own.storage(service: "watched").list()
        var events = changes(of: own)
        // The vault is small, so the deletion compacts it.
        let deleted = try #require(try theirs.commit([.delete("key")]).generation)
        #expect(try own.storage(service: "watched").retrieve(for: "key") == nil)
        #expect(await events.next() == .deleted("key", deleted))
    }

    @Test func whoMissedAWholeFileIsToldToListAnew() async throws {
        let own = try openedWithoutNotices()
        try theirs.store(token: "fake", for: "key", policy: .afterFirstUnlock)
        _ = try own.storage(service: "watched").list()
        var events = changes(of: own)
        _ = try other.compact()
        try theirs.delete(for: "key")
        _ = try other.compact()
        #expect(try own.storage(service: "watched").retrieve(for: "key") == nil)
        #expect(await events.next() == .overflowed)
    }

    @Test func anOlderCopyInTheVaultsPlaceMakesObserversListAnew() async throws {
        let copy = try PosixCopy(of: sandbox.vault, state: sandbox.path.appending("state"))
        let own = try openedWithoutNotices(every: .milliseconds(5))
        try theirs.store(token: "fake", for: "key", policy: .afterFirstUnlock)
        _ = try own.storage(service: "watched").list()
        var events = changes(of: own)
        try copy.restore(vaultOnly: true)
        #expect(await events.next() == .overflowed)
        #expect(try own.storage(service: "watched").retrieve(for: "key") == nil)
    }

    @Test func withoutNoticesTheVaultIsLookedAtAtAnInterval() async throws {
        let own = try openedWithoutNotices(every: .milliseconds(5))
        var events = changes(of: own)
        #expect(VaultWatcher.shared.usesInterval(ObjectIdentifier(own)) == true)
        let stored = try theirs.store(token: "fake", for: "key", policy: .afterFirstUnlock)
        #expect(await events.next() == .stored("key", stored))
        _ = try other.compact()
        let replaced = try theirs.store(token: "fake", for: "key", policy: .afterFirstUnlock)
        #expect(await events.next() == .stored("key", replaced))
        own.close()
        #expect(await events.next() == nil)
    }

    @Test func changesOfDarkItemsComeAfterTheUnlock() async throws {
        try theirs.store(token: "fake", for: "gone", policy: .whenUnlocked)
        _ = try own.storage(service: "watched").list()
        var events = changes(of: own)
        own.lock()
        try theirs.store(token: "fake", for: "dark", policy: .whenUnlocked)
        let latest = try theirs.store(token: "fake", for: "dark", policy: .whenUnlocked)
        let deleted = try #require(try theirs.commit([.delete("gone")]).generation)
        let light = try theirs.store(token: "fake", for: "light", policy: .afterFirstUnlock)
        #expect(await events.next() == .stored("light", light))
        try own.unlock(with: keyFile)
        #expect(await events.next() == .stored("dark", latest))
        #expect(await events.next() == .deleted("gone", deleted))
        let last = try theirs.store(token: "fake", for: "last")
        #expect(await events.next() == .stored("last", last))
    }

    @Test func tooManyDarkChangesMakeObserversListAnew() async throws {
        var events = changes(of: own)
        own.lock()
        try theirs.commit(
            (0..<1_100).map { TokenChange.store(Secret([1]), for: TokenKey("dark-\($0)")) })
        try own.unlock(with: keyFile)
        _ = try own.storage(service: "watched").list()
        let stored = try theirs.store(token: "fake", for: "last")
        var seen: [TokenEvent] = []
        while seen.last != .stored("last", stored), let event = await events.next() { seen.append(event) }
        #expect(seen.contains(.overflowed))
    }

    /// Notices of changes to locked items were lost. The vault reports those changes once it is unlocked.
    @Test func changesInTheDarkThatNoNoticeToldOfAreTold() async throws {
        var events = own.hub.subscribe(service: "watched").makeAsyncIterator()
        let watch = VaultWatch(own)
        watch.aim(with: nil)
        own.lock()
        let dark = try theirs.store(token: "fake", for: "dark", policy: .whenUnlocked)
        #expect(!watch.concerns(FileNotifier.Report()))
        var report = FileNotifier.Report()
        report.isIncomplete = true
        #expect(watch.concerns(report))
        watch.look(with: nil)
        try own.unlock(with: keyFile)
        #expect(await events.next() == .stored("dark", dark))
    }

    /// A listing of a locked vault shows no locked item.
    @Test func whoMissedAWholeFileInTheDarkListsAnewOnceMoreAfterTheUnlock() async throws {
        let own = try openedWithoutNotices()
        try theirs.store(token: "fake", for: "dark", policy: .whenUnlocked)
        _ = try own.storage(service: "watched").list()
        var events = changes(of: own)
        own.lock()
        _ = try other.compact()
        try theirs.delete(for: "dark")
        _ = try other.compact()
        #expect(try own.storage(service: "watched").list().items.isEmpty)
        #expect(await events.next() == .overflowed)
        try own.unlock(with: keyFile)
        let last = try own.storage(service: "watched").store(
            token: "fake", for: "last", policy: .afterFirstUnlock)
        let first = await events.next()
        #expect(first == .overflowed)
        if first == .overflowed { #expect(await events.next() == .stored("last", last)) }
    }

    @Test func whoObservesBeforeTheFirstUnlockListsAnewAfterIt() async throws {
        let late = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        var events = changes(of: late)
        try theirs.store(token: "fake", for: "before")
        try late.unlock(with: keyFile)
        #expect(await events.next() == .overflowed)
        let stored = try theirs.store(token: "fake", for: "key")
        #expect(await events.next() == .stored("key", stored))
    }

    @Test func closingEndsTheSequence() async throws {
        var events = changes(of: own)
        own.close()
        #expect(await events.next() == nil)
        #expect(VaultWatcher.shared.usesInterval(ObjectIdentifier(own)) == nil)
    }

    @Test func theThreadEndsWithTheLastObserver() throws {
        let watcher = VaultWatcher()
        #expect(!watcher.isRunning)
        let hub = own.hub
        let first = hub.subscribe(service: "one")
        watcher.observe(own)
        watcher.observe(other)
        #expect(watcher.isRunning)
        #expect(watcher.usesInterval(ObjectIdentifier(other)) == nil)
        withExtendedLifetime(first) { watcher.release(ObjectIdentifier(own)) }
        #expect(watcher.isRunning)
        hub.end()
        watcher.release(ObjectIdentifier(own))
        watcher.waitUntilIdle()
        #expect(!watcher.isRunning)
    }
}
