import Synchronization
import Testing
import TokenVault

@testable import TokenVaultFile

/// A vault whose keys are rotated again and again, while a device stores under its own keys and never compacts.
@Suite struct ManyRotationsTests {
    private let mine = TestDevice()
    private let third = TestDevice()
    private let words = SimulatedVault.key("old words")
    private let policies: [AccessPolicy] = [.whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly]

    private func create() throws {
        try mine.create()
        try third.enrol(in: mine)
    }

    /// Both devices have a vault with a passphrase, which the third has enrolled with.
    private func createWithPassphrase() throws {
        try mine.create()
        try mine.use { _ = try $0.addSlot(words) }
        try third.enrol(in: mine, with: words)
    }

    /// Rotates the keys here, and stores an item of each policy on the third device.
    private func rotate(_ round: Int) throws {
        try mine.receive(third.file)
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        try third.receive(mine.file)
        try third.use { try $0.storeEach(policies, round) }
    }

    /// A set has room for so many versions. Beyond, no reader accepts the keybag, in either of its copies.
    @Test func aDeviceThatOnlyStoresHasRoomForItsKeys() throws {
        try create()
        for round in 1...20 {
            try rotate(round)
            try third.use { vault in
                let items = try vault.values().count
                #expect(vault.hasRenewedKeys && items == 2 * round, "\(round): \(items)")
            }
        }
    }

    @Test func aKeybagThatNoReaderAcceptsIsNotWritten() throws {
        try create()
        try third.use { vault in
            var keybag = vault.state.withLock { $0.keybag }
            #expect(keybag.encoded() != nil)
            let key = try #require(keybag.sets.last?.keys.last)
            for version in 100...115 {
                keybag.sets[keybag.sets.count - 1].keys.append(
                    Keybag.WrappedClass(policy: key.policy, version: UInt32(version), wrapped: key.wrapped))
            }
            #expect(keybag.encoded() == nil)
            let session = try vault.session()
            let roots = try vault.heldRoots(session)
            let full = keybag
            let refused = failure {
                try vault.replaceKeybag(session, roots: roots) { $0.sets = full.sets }
            }
            #expect(refused?.code == .tooManySlots && refused?.reason == .slots(.keysFull))
        }
        #expect(try third.use { try $0.values() }.isEmpty)
    }

    /// With its key file the device opens no passcode class. It has none, and renews its keys all the same.
    @Test func aDeviceWithoutAPasscodeClassRenewsItsKeysWithAKeyFile() throws {
        try mine.create()
        try mine.use { _ = try $0.addSlot(words) }
        try third.enrol(in: mine)
        try mine.receive(third.file)
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key, words]) }
        try third.receive(mine.file)
        try third.use { vault in
            #expect(vault.hasRenewedKeys)
            try vault.storeOwn("fake own", for: "own")
        }
        #expect(try third.use { try $0.value(of: "own") } == "fake own")
    }

    /// A device with a passcode class renews its keys with the passphrase only. Until then its status says so.
    @Test func aDeviceThatKeepsItsEarlierKeysSaysSo() throws {
        try createWithPassphrase()
        try mine.receive(third.file)
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key, words]) }
        try third.receive(mine.file)
        func hasNote(_ key: String) throws -> Bool {
            let vault = try SimulatedVault.open(at: SimulatedVault.location(on: third.disk), key: key)
            defer { vault.close() }
            return try vault.status().notes.contains {
                $0.hasSuffix("keys from before a key rotation: unlock the vault with the passphrase")
            }
        }
        #expect(try hasNote("first"))
        #expect(try !hasNote("old words"))
        #expect(try !hasNote("first"))
    }

    /// With its key file the device cannot take new keys, whatever room there is: reading changes nothing.
    @Test func anUnlockThatCannotRenewChangesNothing() throws {
        let policies = policies + [.whenPasscodeSetThisDeviceOnly]
        try createWithPassphrase()
        for round in 1...8 {
            try mine.receive(third.file)
            try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key, words]) }
            try third.receive(mine.file)
            let file = third.file
            try third.use { _ in }
            #expect(third.file == file, "\(round)")
            let vault = try SimulatedVault.open(at: SimulatedVault.location(on: third.disk), key: "old words")
            defer { vault.close() }
            try vault.storeEach(policies, round)
            #expect(try vault.values().count == round * policies.count)
            #expect(vault.hasRenewedKeys, "\(round)")
        }
    }

    /// The keys were rotated here again and again, and each time a crash kept the items from being sealed again.
    @Test func aRotationMakesRoomForItself() throws {
        try mine.create()
        for round in 1...8 {
            try mine.use { vault in
                try vault.storeEach(policies, round)
                guard round < 8 else { return }
                _ = try vault.replaceRoot(
                    [(old: TestDevice.key, new: TestDevice.key)], removing: [], droppingOthers: false,
                    isResealing: false)
            }
        }
        let full = try mine.use { vault in vault.state.withLock { $0.keybag.sets.map(\.keys.count) } }
        #expect(full.max() == Keybag.maximumClasses)
        let report = try mine.use { try $0.rotateKeys(keeping: [TestDevice.key]) }
        #expect(report.remaining == 0 && report.deferredReason == nil, "\(report)")
        #expect(try mine.use { try $0.values().count } == 16)
    }

    /// A program that has had the vault open, as the agent has, takes the new keys with its next unlock.
    @Test func aVaultThatIsUnlockedAgainRenewsItsKeys() throws {
        try create()
        let vault = try third.opened()
        defer { vault.close() }
        try mine.receive(third.file)
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        try third.receive(mine.file)
        try? vault.refresh()
        #expect(try vault.lockState() != .unlocked)
        try vault.unlock(with: TestDevice.key)
        #expect(vault.hasRenewedKeys)
    }
}
