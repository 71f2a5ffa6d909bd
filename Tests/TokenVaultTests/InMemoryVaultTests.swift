import Synchronization
import Testing
import TokenVault

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What the in-memory vault does beyond the contract that every backend keeps.
@Suite struct InMemoryVaultTests {
    private let vault = InMemoryVault()

    private func storage(_ service: String = "com.example.app") -> InMemoryTokenStorage.Blocking {
        vault.storage(service: service).blocking
    }

    private func refusal(_ body: () throws -> some Any) -> TokenStorageError.Code? {
        do {
            _ = try body()
            return nil
        } catch {
            return (error as? TokenStorageError)?.code
        }
    }

    @Test func generationsGrowAcrossTheServicesOfAVault() throws {
        var generations: [Generation] = []
        for _ in 0..<3 {
            for service in ["one", "two", "three"] {
                generations.append(try storage(service).store(token: "x", for: "key"))
            }
            try storage("one").deleteAll()
        }
        #expect(generations == generations.sorted())
        #expect(Set(generations).count == generations.count)
    }

    @Test func storagesOfTheirOwnShareNothing() throws {
        let one = InMemoryTokenStorage(service: "com.example.app").blocking
        let two = InMemoryTokenStorage(service: "com.example.app").blocking
        try one.store(token: "x", for: "key")
        #expect(try two.retrieve(for: "key") == nil)
    }

    @Test func theClockGivesTheDates() throws {
        let now = Mutex(Date(timeIntervalSince1970: 1_000))
        let vault = InMemoryVault(clock: { now.withLock { $0 } })
        let storage = vault.storage(service: "com.example.app").blocking
        try storage.store(token: "x", for: "key")
        now.withLock { $0 = Date(timeIntervalSince1970: 2_000) }
        try storage.commit([.update("key", details: TokenDetails(label: "label"))])
        let metadata = try #require(try storage.metadata(for: "key"))
        #expect(metadata.created == Date(timeIntervalSince1970: 1_000))
        #expect(metadata.modified == Date(timeIntervalSince1970: 2_000))
    }

    @Test func theClockMayAskTheVault() throws {
        let box = Mutex<InMemoryTokenStorage.Blocking?>(nil)
        let vault = InMemoryVault(clock: {
            _ = try? box.withLock { $0 }?.list()
            return Date(timeIntervalSince1970: 1)
        })
        let storage = vault.storage(service: "com.example.app").blocking
        box.withLock { $0 = storage }
        try storage.store(token: "x", for: "key")
        #expect(try storage.contains(for: "key"))
        box.withLock { $0 = nil }
    }

    @Test func aDeviceThatWasEnrolledKeepsItsOwnItems() throws {
        let policy = AccessPolicy.whenUnlockedThisDeviceOnly
        try storage().store(token: "original", for: "original", policy: policy)
        vault.setDevice(.another)
        #expect(!storage().supportedPolicies.contains(policy))
        #expect(refusal { try storage().store(token: "x", for: "new", policy: policy) } == .unsupportedPolicy)
        vault.setDevice(.anotherEnrolled)
        try storage().store(token: "theirs", for: "theirs", policy: policy)
        #expect(try storage().retrieve(for: "theirs") == "theirs")
        #expect(refusal { try storage().retrieve(for: "original") } == .wrongDevice)
        vault.setDevice(.original)
        #expect(refusal { try storage().retrieve(for: "theirs") } == .wrongDevice)
        #expect(try storage().retrieve(for: "original") == "original")
        #expect(try storage().list().hidden == 1)
    }

    @Test func anotherDeviceIsToldEvenWhileLocked() throws {
        try storage().store(token: "x", for: "key")
        vault.setDevice(.another)
        vault.setLockState(.afterFirstUnlock)
        // Unlocking would not help, so the error does not suggest it.
        #expect(refusal { try storage().retrieve(for: "key") } == .wrongDevice)
    }

    @Test func thePasscodeChangesOnlyWhileUnlocked() throws {
        let policy = AccessPolicy.whenPasscodeSetThisDeviceOnly
        try storage().store(token: "x", for: "key", policy: policy)
        for state in [LockState.locked, .afterFirstUnlock] {
            vault.setLockState(state)
            #expect(refusal { try vault.setPasscode(isSet: false) } == .locked)
        }
        vault.setLockState(.unlocked)
        #expect(try storage().retrieve(for: "key") == "x")
        try vault.setPasscode(isSet: false)
        #expect(try storage().retrieve(for: "key") == nil)
        vault.close()
        #expect(refusal { try vault.setPasscode(isSet: true) } == .closed)
    }

    @Test func destroyedItemsAreToldAsDeleted() async throws {
        let policy = AccessPolicy.whenPasscodeSetThisDeviceOnly
        let stored = try storage().store(token: "x", for: "key", policy: policy)
        let changes = vault.storage(service: "com.example.app").changes()
        try vault.setPasscode(isSet: false)
        guard case .deleted("key", let generation) = await changes.first(where: { _ in true }) else {
            Issue.record("the destroyed item was not reported")
            return
        }
        #expect(generation > stored)
        let next = try storage().store(token: "y", for: "key")
        #expect(next > generation)
    }

    @Test func errorsNameTheirOperation() throws {
        vault.setLockState(.locked)
        let operations: [(String, (InMemoryTokenStorage.Blocking) throws -> Void)] = [
            ("store", { try $0.store(token: "x", for: "key") }), ("delete", { try $0.delete(for: "key") }),
            ("list", { _ = try $0.list() }), ("deleteAll", { try $0.deleteAll() }),
            ("rename", { try $0.commit([.rename("a", to: "b")]) }),
            ("update", { try $0.commit([.update("a", details: TokenDetails())]) }),
            ("commit", { try $0.commit([.delete("a"), .delete("b")]) }),
        ]
        for (operation, call) in operations {
            let error = #expect(throws: TokenStorageError.self) { try call(storage()) }
            #expect(error?.operation == operation)
            #expect(error?.backend == "memory")
            #expect(error?.code == .locked)
        }
    }

    @Test func supportedPoliciesFollowDeviceAndPasscode() throws {
        #expect(storage().supportedPolicies == Set(AccessPolicy.allCases))
        try vault.setPasscode(isSet: false)
        #expect(!storage().supportedPolicies.contains(.whenPasscodeSetThisDeviceOnly))
        vault.setDevice(.another)
        #expect(storage().supportedPolicies == [.whenUnlocked, .afterFirstUnlock])
    }
}
