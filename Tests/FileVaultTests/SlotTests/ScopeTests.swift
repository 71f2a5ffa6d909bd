import SystemPackage
import Testing
import TokenVault

/// Slots that a person has to type for, and slots that open by themselves and less.
@Suite struct ScopeTests {
    private let sandbox: Sandbox
    private static let second = UnlockMethod.keyFile(Secret([UInt8](repeating: 0x42, count: 32)))

    init() throws { sandbox = try Sandbox() }

    private func made(_ method: UnlockMethod) throws -> BlockingFileVault {
        try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: method, configuration: sandbox.configuration)
    }
    private func opened(_ method: UnlockMethod) throws -> BlockingFileVault {
        let vault = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try vault.unlock(with: method)
        return vault
    }
    private func error(_ body: () throws -> Void) -> TokenStorageError? {
        #expect(throws: TokenStorageError.self) { try body() }
    }

    @Test func whatOpensByItselfOpensLessBesideAnAttendedSlot() throws {
        let key = RecoveryKey()
        let vault = try made(.recoveryKey(key))
        let slot = try vault.addSlot(keyFile)
        #expect(slot.scope == .afterFirstUnlock)
        let limited = try opened(keyFile)
        #expect(try limited.lockState() == .unlocked && limited.status().unlockedBy == slot)
        let storage = limited.storage(service: "s")
        try storage.store(token: "fake", for: "open", policy: .afterFirstUnlock)
        // The slot does not open the default policy, so the store is refused rather than weakened.
        let refused = error { try storage.store(token: "fake", for: "shut") }
        #expect(refused?.code == .notPermitted && refused?.advice?.contains("after-first-unlock") == true)
        try vault.storage(service: "s").store(token: "fake", for: "shut")
        #expect(try storage.list().hiddenReasons == [.notPermitted: 1])
        #expect(try storage.retrieve(for: "open") == "fake")
        #expect(error { _ = try storage.retrieve(for: "shut") }?.code == .notPermitted)
        // The limited session can neither extend its own access nor remove that of others.
        #expect(error { _ = try limited.addSlot(Self.second, scope: .all) }?.code == .notPermitted)
        #expect(error { _ = try limited.addSlot(Self.second) }?.code == .notPermitted)
        #expect(error { try limited.removeSlot(1) }?.code == .notPermitted)
        // An export that would leave out a portable item is refused rather than partial.
        let report = try limited.export(to: sandbox.path.appending("file"), passphrase: Secret(utf8: "fake"))
        #expect(report.items == 1 && report.staying == 1)
        try vault.storage(service: "s").store(token: "fake", for: "portable", policy: .whenUnlocked)
        let partial = error {
            _ = try limited.export(to: sandbox.path.appending("other"), passphrase: Secret(utf8: "fake"))
        }
        #expect(partial?.code == .notPermitted)
        try vault.storage(service: "s").delete(for: "portable")
        // After a lock, readable items stay readable, and the other items are reported as locked.
        limited.lock()
        #expect(try storage.retrieve(for: "open") == "fake")
        #expect(error { _ = try storage.retrieve(for: "shut") }?.code == .locked)
        // The session holds the keys that need no class, so it can compact and verify without destroying
        // anything.
        _ = try limited.compact()
        #expect(try limited.verify().isClean)
        #expect(try vault.storage(service: "s").retrieve(for: "shut") == "fake")
        // Unlocks with more access.
        try limited.unlock(with: .recoveryKey(key))
        #expect(try storage.retrieve(for: "shut") == "fake")
    }

    @Test func everythingIsGivenWhenItIsAskedFor() throws {
        let vault = try made(.recoveryKey(RecoveryKey()))
        #expect(try vault.addSlot(keyFile, scope: .all).scope == .all)
        #expect(try vault.addSlot(in: MemoryKeyring()).scope == .afterFirstUnlock)
        try vault.storage(service: "s").store(token: "fake", for: "k")
        #expect(try opened(keyFile).storage(service: "s").retrieve(for: "k") == "fake")
        let refused = error {
            _ = try vault.addSlot(.recoveryKey(RecoveryKey()), scope: .afterFirstUnlock)
        }
        #expect(refused?.code == .invalidArgument)
    }

    @Test func theFirstAttendedSlotNarrowsNothingThatIsThere() throws {
        let vault = try made(keyFile)
        #expect(try vault.addSlot(Self.second).scope == .all)
        _ = try vault.addSlot(.recoveryKey(RecoveryKey()))
        #expect(try vault.slots().map(\.scope) == [.all, .all, .all])
        #expect(try vault.addSlot(in: MemoryKeyring()).scope == .afterFirstUnlock)
        // To get a narrower scope, a slot is removed and added again.
        try vault.removeSlot(2)
        #expect(try vault.addSlot(Self.second).scope == .afterFirstUnlock)
    }

    @Test func theLastSlotThatOpensEverythingStays() throws {
        let vault = try made(.recoveryKey(RecoveryKey()))
        _ = try vault.addSlot(keyFile)
        let refused = error { try vault.removeSlot(1) }
        #expect(refused?.code == .lastSlot && refused?.advice?.contains("opens everything") == true)
        // With another full slot, the last attended slot can be removed. The narrow slot stays narrow.
        _ = try vault.addSlot(Self.second, scope: .all)
        try vault.removeSlot(1)
        #expect(try vault.slots().map(\.scope) == [.afterFirstUnlock, .all])
        // Without an attended slot, a new slot opens everything.
        #expect(try vault.addSlot(in: MemoryKeyring()).scope == .all)
        try vault.storage(service: "s").store(token: "fake", for: "k")
        let limited = try opened(keyFile)
        #expect(error { _ = try limited.storage(service: "s").retrieve(for: "k") }?.code == .notPermitted)
    }

    /// A second slot of a key would open the vault after the first is removed.
    @Test func aMethodOpensOneSlot() throws {
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let words = UnlockMethod.passphrase(Secret(utf8: "n\u{e9}e, obviously fake"))
        let added = try vault.addSlot(words)
        let otherSpelling = UnlockMethod.passphrase(Secret(utf8: "ne\u{301}e, obviously fake"))
        for (method, slot) in [(keyFile, 1), (words, added.id), (otherSpelling, added.id)] {
            let refused = #expect(throws: TokenStorageError.self) { try vault.addSlot(method, scope: .all) }
            #expect(refused?.code == .invalidArgument)
            guard case .slotExists(let existing) = refused?.reason else {
                Issue.record("\(refused as Any)")
                continue
            }
            #expect(existing.id == slot)
        }
        #expect(try vault.slots().count == 2)
        // With another scope, the second slot replaces the first.
        _ = try vault.addSlot(keyFile, scope: .afterFirstUnlock)
        #expect(try vault.slots().count == 3)
    }

    @Test func aSlotAddedElsewhereIsTakenNoteOf() throws {
        let key = RecoveryKey()
        let vault = try made(.recoveryKey(key))
        _ = try vault.addSlot(keyFile)
        let limited = try opened(keyFile)
        try limited.storage(service: "s").store(token: "fake", for: "k", policy: .afterFirstUnlock)
        // The other session checks the changed keybag with its own keys.
        _ = try vault.addSlot(Self.second)
        #expect(try limited.storage(service: "s").retrieve(for: "k") == "fake")
        #expect(try limited.lockState() == .unlocked)
    }
}
