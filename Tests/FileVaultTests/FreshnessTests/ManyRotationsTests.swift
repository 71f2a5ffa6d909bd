import Synchronization
import Testing
import TokenVault

@testable import TokenVaultFile

/// A vault whose keys are rotated again and again, while a device stores under its own keys and never compacts.
@Suite struct ManyRotationsTests {
    private let mine = TestDevice()
    private let third = TestDevice()

    private func create() throws {
        try mine.create()
        try third.receive(mine.file)
        try third.use { _ = try $0.enrolDevice() }
    }

    /// Rotates the keys here, and stores an item of each policy on the third device.
    private func rotate(_ round: Int) throws {
        try mine.receive(third.file)
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        try third.receive(mine.file)
        try third.use { vault in
            for policy in [AccessPolicy.whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly] {
                try vault.storage(service: SimulatedVault.service).store(
                    token: "fake \(round)", for: TokenKey("\(round) \(policy)"), policy: policy)
            }
        }
    }

    /// A set has room for so many versions. Beyond, no reader accepts the keybag, in either of its copies.
    @Test func aDeviceThatOnlyStoresHasRoomForItsKeys() throws {
        try create()
        for round in 1...20 {
            try rotate(round)
            let (sets, items) = try third.use { vault in
                (vault.state.withLock { $0.keybag.sets }, try vault.values().count)
            }
            #expect(sets.allSatisfy { $0.keys.count <= Keybag.maximumClasses }, "\(round)")
            #expect(sets.allSatisfy { $0.olderRoots == nil } && items == 2 * round, "\(round): \(items)")
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
        let words = SimulatedVault.key("old words")
        try mine.create()
        try mine.use { _ = try $0.addSlot(words) }
        try third.receive(mine.file)
        try third.use { _ = try $0.enrolDevice() }
        try mine.receive(third.file)
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key, words]) }
        try third.receive(mine.file)
        let isRenewed = try third.use { vault in
            try vault.storeOwn("fake own", for: "own")
            return vault.state.withLock { $0.keybag.sets.allSatisfy { $0.olderRoots == nil } }
        }
        #expect(isRenewed)
        #expect(try third.use { try $0.value(of: "own") } == "fake own")
    }

    /// With a passcode class it takes the passphrase. Until then the status says which keys hold.
    @Test func aDeviceThatKeepsItsEarlierKeysSaysSo() throws {
        let words = SimulatedVault.key("old words")
        try mine.create()
        try mine.use { _ = try $0.addSlot(words) }
        try third.receive(mine.file)
        try third.use { vault in
            try vault.unlock(with: words)
            _ = try vault.enrolDevice()
        }
        try mine.receive(third.file)
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key, words]) }
        try third.receive(mine.file)
        func hasNote(_ key: String) throws -> Bool {
            let vault = try SimulatedVault.open(at: SimulatedVault.location(on: third.disk), key: key)
            defer { vault.close() }
            return try vault.status().notes.contains {
                $0.hasSuffix("keys from before a key rotation: unlock it with the passphrase")
            }
        }
        #expect(try hasNote("first"))
        #expect(try !hasNote("old words"))
        #expect(try !hasNote("first"))
    }

    /// With its key file the device cannot take new keys, whatever room there is: reading changes nothing.
    @Test func anUnlockThatCannotRenewChangesNothing() throws {
        let words = SimulatedVault.key("old words")
        let policies: [AccessPolicy] = [
            .whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly, .whenPasscodeSetThisDeviceOnly,
        ]
        try mine.create()
        try mine.use { _ = try $0.addSlot(words) }
        try third.receive(mine.file)
        try third.use { vault in
            try vault.unlock(with: words)
            _ = try vault.enrolDevice()
        }
        for round in 1...8 {
            try mine.receive(third.file)
            try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key, words]) }
            try third.receive(mine.file)
            try third.use { _ in }
            let file = third.file
            try third.use { _ in }
            #expect(third.file == file, "\(round)")
            let vault = try SimulatedVault.open(at: SimulatedVault.location(on: third.disk), key: "old words")
            for policy in policies {
                try vault.storage(service: SimulatedVault.service).store(
                    token: "fake \(round)", for: TokenKey("\(round) \(policy)"), policy: policy)
            }
            #expect(try vault.values().count == round * policies.count)
            #expect(vault.state.withLock { $0.keybag.sets.allSatisfy { $0.olderRoots == nil } }, "\(round)")
            vault.close()
        }
    }

    /// The keys were rotated here again and again, and each time a crash kept the items from being sealed again.
    @Test func aRotationMakesRoomForItself() throws {
        try mine.create()
        for round in 1...8 {
            try mine.use { vault in
                for policy in [AccessPolicy.whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly] {
                    try vault.storage(service: SimulatedVault.service).store(
                        token: "fake \(round)", for: TokenKey("\(round) \(policy)"), policy: policy)
                }
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
        try vault.unlock(with: TestDevice.key)
        #expect(vault.state.withLock { $0.keybag.sets.allSatisfy { $0.olderRoots == nil } })
    }
}
