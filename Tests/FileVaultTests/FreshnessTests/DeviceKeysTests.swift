import Testing
import TokenVault

@testable import TokenVaultFile

/// A merge of files that have different keys for the items of one device. What no key opens reads as absent, or as
/// damaged: an item stays with keys that open it, or in a file that has them.
@Suite struct DeviceKeysTests {
    private let mine = TestDevice()
    private let third = TestDevice()

    /// Both devices have the vault; the third is enrolled, and has stored the item "first".
    private func create() throws {
        try mine.create()
        try third.enrol(in: mine)
        try third.use { try $0.storeOwn("fake first", for: "first") }
        try mine.receive(third.file)
        try mine.use { _ = try $0.devices() }
    }

    /// Puts `file` on the third device, which forgets what it has seen.
    private func returnThird(to file: [UInt8]) throws {
        third.forgetAnchor()
        try third.receive(file)
    }

    private func thirdsOwnValues(_ keys: String...) throws -> [String?] {
        try third.use { vault in try keys.map { try vault.value(of: $0) } }
    }

    /// Each device merges the other's file until neither has anything new.
    private func mergeInTurn() throws {
        for _ in 1...2 {
            #expect(try third.merge(mine.file).remaining == 0)
            #expect(try mine.merge(third.file).remaining == 0)
        }
        #expect(mine.file == third.file)
    }

    /// The vault has no passphrase any more, and the copy has an item that only a passphrase may open.
    @Test(arguments: [false, true]) func aDestroyedPasscodeClassStaysDestroyed(hasOther: Bool) throws {
        let words = SimulatedVault.key("old words")
        let policy = AccessPolicy.whenPasscodeSetThisDeviceOnly
        try mine.create()
        let slot = try mine.use { try $0.addSlot(words).id }
        try third.receive(mine.file)
        try third.use { vault in
            try vault.unlock(with: words)
            _ = try vault.enrolDevice()
            let storage = vault.storage(service: SimulatedVault.service)
            try storage.store(token: "fake first", for: "first", policy: policy)
        }
        try mine.receive(third.file)
        try mine.use { try $0.removeSlot(slot) }
        try third.use { vault in
            try vault.unlock(with: words)
            let storage = vault.storage(service: SimulatedVault.service)
            if hasOther { try vault.storeOwn("fake own", for: "own") }
            try storage.store(token: "fake second", for: "second", policy: policy)
        }
        let report = try mine.merge(third.file)
        #expect(report.remaining == 1 && report.taken == (hasOther ? 1 : 0), "\(report)")
        let theirs = third.file
        try third.receive(mine.file)
        #expect(failure { try third.use { _ in } }?.code == .forked)
        try third.receive(theirs)
        try third.use { vault in
            try vault.unlock(with: words)
            #expect(try vault.value(of: "second") == "fake second")
        }
    }

    /// The device takes new keys on two branches: both are the second version of their class.
    @Test(arguments: [false, true]) func keysOfOneVersionOnTwoBranchesStayApart(isReversed: Bool) throws {
        try create()
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        let rotated = mine.file
        var branches: [[UInt8]] = []
        for name in ["one", "two"] {
            try returnThird(to: rotated)
            try third.use { try $0.storeOwn("fake \(name)", for: TokenKey(name)) }
            branches.append(third.file)
        }
        if isReversed { branches.reverse() }
        for branch in branches { _ = try mine.merge(branch) }
        _ = try third.merge(mine.file)
        for branch in branches {
            _ = try third.merge(branch)
            #expect(try thirdsOwnValues("first")[0] == "fake first")
        }
        #expect(try thirdsOwnValues("one", "two") == ["fake one", "fake two"])
        try mergeInTurn()
        #expect(try thirdsOwnValues("first", "one", "two") == ["fake first", "fake one", "fake two"])
    }

    /// A compaction seals the items under the new keys, and removes the earlier ones.
    @Test func keysThatLostTheirEarlierVersionsAreTaken() throws {
        try create()
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        try third.receive(mine.file)
        try mine.use { try $0.store("fake mine", for: "mine") }
        try third.use { vault in
            try vault.storeOwn("fake own", for: "own")
            _ = try vault.compact()
        }
        let report = try mine.merge(third.file)
        #expect(report.remaining == 0 && report.deleted == 0 && report.taken == 1, "\(report)")
        try third.receive(mine.file)
        #expect(try thirdsOwnValues("first", "own", "mine") == ["fake first", "fake own", "fake mine"])
    }

    /// Each file has deleted the item that the other file has. From outside, the two items may be one value
    /// under two keys. The vault's item is under keys that the device no longer has. Only the device can
    /// decide, so its value stays in the copy.
    @Test func aValueWithoutKeysStaysInTheCopy() throws {
        try create()
        try third.use { try $0.storeOwn("fake other", for: "other") }
        try mine.receive(third.file)
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        try third.receive(mine.file)
        // The device renews its keys.
        #expect(try third.use { $0.hasRenewedKeys })
        let renewed = third.file
        try third.use { _ = try $0.delete("other") }
        try mine.receive(third.file)
        try mine.use { _ = try $0.devices() }
        try returnThird(to: renewed)
        try third.use { vault in
            _ = try vault.delete("first")
            _ = try vault.compact()
        }
        let report = try mine.merge(third.file)
        #expect(report.remaining == 1 && report.deleted == 1, "\(report)")
        #expect(try mine.use { try $0.verify().isClean })
        try third.merge(mine.file)
        // The deletion can be repeated, but a lost value could not be restored.
        #expect(try thirdsOwnValues("first", "other") == [nil, "fake other"])
        try mergeInTurn()
    }

    /// An item under the earlier keys that only the vault has keeps those.
    @Test func anItemUnderEarlierKeysKeepsThem() throws {
        try create()
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        try third.receive(mine.file)
        try third.use { try $0.storeOwn("fake own", for: "own") }
        let before = third.file
        try third.use { try $0.storeOwn("fake second", for: "second") }
        try mine.receive(third.file)
        try mine.use { try $0.store("fake mine", for: "mine") }
        try returnThird(to: before)
        try third.use { vault in
            try vault.storeOwn("fake other", for: "other")
            _ = try vault.rotateKeys(keeping: [TestDevice.key])
        }
        #expect(failure { try mine.merge(third.file) }?.reason == .ancestry(.keysRotatedInCopy))
        #expect(try third.merge(mine.file).remaining == 0)
        #expect(
            try thirdsOwnValues("first", "own", "other", "second") == [
                "fake first", "fake own", "fake other", "fake second",
            ])
        #expect(try mine.merge(third.file).remaining == 0)
        #expect(mine.file == third.file)
    }

    /// The device enrols on two branches.
    @Test(arguments: [false, true]) func anEnrolmentOnTwoBranchesIsSettledByItsDevice(isReversed: Bool) throws
    {
        let (earlier, later) = try enrolTwice(storing: true)
        let branches = isReversed ? [later, earlier] : [earlier, later]
        for branch in branches { _ = try mine.merge(branch) }
        _ = try third.merge(mine.file)
        for branch in branches { _ = try third.merge(branch) }
        #expect(try thirdsOwnValues("one", "two") == ["fake one", "fake two"])
        try mergeInTurn()
        #expect(try thirdsOwnValues("one", "two") == ["fake one", "fake two"])
        let report = try mine.merge(branches[1])
        #expect(report.isUpToDate && report.notes.isEmpty, "\(report)")
    }

    /// The device was removed and has enrolled again; a file from before has an item that it stored since.
    @Test func aDeviceTakesItsItemsAlongToANewEnrolment() throws {
        try create()
        let before = third.file
        let id = try #require(try third.use { try $0.devices().first(where: \.isThisDevice)?.id })
        #expect(try mine.use { try $0.removeDevice(id) } == 1)
        try third.receive(mine.file)
        try third.use { vault in
            _ = try vault.enrolDevice()
            try vault.storeOwn("fake new", for: "new")
        }
        let enrolledAgain = third.file
        try returnThird(to: before)
        try third.use { try $0.storeOwn("fake own", for: "own") }
        let report = try third.merge(enrolledAgain)
        #expect(report.remaining == 0 && report.taken == 1 && report.deleted == 1, "\(report)")
        #expect(try thirdsOwnValues("first", "own", "new") == [nil, "fake own", "fake new"])
        #expect(try mine.merge(third.file).remaining == 0)
        #expect(mine.file == third.file)
    }

    /// Returns files of two branches on which the third device enrolled: the earlier enrolment, and the later one.
    private func enrolTwice(storing: Bool) throws -> (earlier: [UInt8], later: [UInt8]) {
        try mine.create()
        let before = mine.file
        var later = third
        later.secondsAhead = 60
        var branches: [[UInt8]] = []
        for (device, name) in [(third, "one"), (later, "two")] {
            try returnThird(to: before)
            try device.use { vault in
                _ = try vault.enrolDevice()
                if storing || name == "two" { try vault.storeOwn("fake \(name)", for: TokenKey(name)) }
            }
            branches.append(third.file)
        }
        return (branches[0], branches[1])
    }

    /// The third device stays in its earlier enrolment, since the later one was removed. Returns its identifier.
    @discardableResult
    private func stayInEarlierEnrolment() throws -> VaultDevice.ID {
        let (earlier, later) = try enrolTwice(storing: true)
        try mine.merge(later)
        let id = try #require(try third.use { try $0.devices().first(where: \.isThisDevice)?.id })
        _ = try mine.use { try $0.removeDevice(id) }
        try returnThird(to: earlier)
        try third.merge(mine.file)
        return id
    }

    /// The later enrolment was removed here. Neither it nor the earlier one comes back with another file.
    @Test(arguments: [false, true]) func aRemovalCoversEarlierEnrolments(hasItem: Bool) throws {
        let (earlier, later) = try enrolTwice(storing: hasItem)
        try mine.merge(later)
        let id = try #require(try third.use { try $0.devices().first(where: \.isThisDevice)?.id })
        #expect(try mine.use { try $0.removeDevice(id) } == 1)
        let report = try mine.merge(earlier)
        #expect(report.remaining == (hasItem ? 1 : 0), "\(report)")
        #expect(report.notes.contains { $0.contains("was removed from the vault") }, "\(report.notes)")
        try third.use { try $0.storeOwn("fake new", for: "new") }
        let next = try mine.merge(third.file)
        #expect(next.remaining == 1 && next.deleted == 0, "\(next)")
        #expect(try mine.use { try $0.devices() }.allSatisfy(\.isThisDevice))
        #expect(try mine.use { try $0.values() }.isEmpty)
        // As the note says, the items are merged once the device has enrolled in this vault.
        let own = third.file
        try third.receive(mine.file)
        try third.adopt()
        try third.use { _ = try $0.enrolDevice() }
        #expect(try third.merge(own).remaining == 0)
        #expect(try thirdsOwnValues("new") == ["fake new"])
    }

    /// The earlier enrolment gives way to the later one, which is removed then.
    @Test func anEnrolmentThatGaveWayDoesNotComeBack() throws {
        let (earlier, later) = try enrolTwice(storing: true)
        try third.receive(later)
        try third.merge(earlier)
        for file in [earlier, third.file] { try mine.merge(file) }
        let id = try #require(try third.use { try $0.devices().first(where: \.isThisDevice)?.id })
        #expect(try mine.use { try $0.removeDevice(id) } == 2)
        try returnThird(to: earlier)
        try third.use { try $0.storeOwn("fake new", for: "new") }
        #expect(try mine.merge(third.file).remaining == 1)
        #expect(try mine.use { try $0.devices() }.allSatisfy(\.isThisDevice))
    }

    /// The later enrolment was removed, and the device, which is in the earlier one, stays enrolled. Its keys are
    /// renewed after a rotation, and taken.
    @Test func aDeviceThatStaysEnrolledTakesPartInRotations() throws {
        try stayInEarlierEnrolment()
        let other = TestDevice()
        try other.receive(third.file)
        try other.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        try third.receive(other.file)
        try third.use { try $0.storeOwn("fake new", for: "new") }
        #expect(try other.merge(third.file).remaining == 0)
        try third.receive(other.file)
        #expect(try thirdsOwnValues("one", "new") == ["fake one", "fake new"])
    }

    /// The device stays in its earlier enrolment, since the later one was removed. A file that has the later one
    /// takes over both.
    @Test(arguments: [false, true]) func aLaterEnrolmentThatWasRemovedGivesWay(hasNewItem: Bool) throws {
        let (earlier, later) = try enrolTwice(storing: true)
        let other = TestDevice()
        try other.receive(later)
        if hasNewItem {
            try returnThird(to: later)
            try third.use { try $0.storeOwn("fake new", for: "new") }
            try other.receive(third.file)
        }
        // The file with the removal lacks a part of this file.
        try other.use { try $0.store("fake other", for: "other") }
        try mine.merge(later)
        let id = try #require(try third.use { try $0.devices().first(where: \.isThisDevice)?.id })
        #expect(try mine.use { try $0.removeDevice(id) } == 1)
        try returnThird(to: earlier)
        try third.merge(mine.file)
        #expect(try other.merge(third.file).remaining == (hasNewItem ? 1 : 0))
        for _ in 1...2 {
            #expect(try third.merge(other.file).remaining == 0)
            #expect(try other.merge(third.file).remaining == 0)
        }
        #expect(other.file == third.file)
        #expect(try thirdsOwnValues("one", "two", "new") == ["fake one", nil, hasNewItem ? "fake new" : nil])
    }

    /// Both files have the passphrase that leads to the passcode class, which the device has added since.
    @Test func aPasscodeClassThatThePassphraseOpensIsTaken() throws {
        let words = SimulatedVault.key("old words")
        try mine.create()
        try mine.use { _ = try $0.addSlot(words) }
        try third.receive(mine.file)
        try third.use { _ = try $0.enrolDevice() }
        try mine.receive(third.file)
        try mine.use { try $0.store("fake mine", for: "mine") }
        try third.use { vault in
            try vault.unlock(with: words)
            _ = try vault.enrolDevice()
            try vault.storage(service: SimulatedVault.service).store(
                token: "fake own", for: "own", policy: .whenPasscodeSetThisDeviceOnly)
        }
        let report = try mine.merge(third.file)
        #expect(report.remaining == 0 && report.taken == 1, "\(report)")
        try third.receive(mine.file)
        try third.use { vault in
            try vault.unlock(with: words)
            #expect(try vault.value(of: "own") == "fake own")
        }
    }

    /// The device stays in its earlier enrolment, since only that has keys for an item. Other devices follow.
    @Test func anEarlierEnrolmentWithAPasscodeItemStays() throws {
        let words = SimulatedVault.key("old words")
        try mine.create()
        try mine.use { _ = try $0.addSlot(words) }
        let before = mine.file
        try third.receive(before)
        try third.use { vault in
            try vault.unlock(with: words)
            _ = try vault.enrolDevice()
            try vault.storage(service: SimulatedVault.service).store(
                token: "fake one", for: "one", policy: .whenPasscodeSetThisDeviceOnly)
        }
        let earlier = third.file
        var later = third
        later.secondsAhead = 60
        try returnThird(to: before)
        try later.use { vault in
            _ = try vault.enrolDevice()
            try vault.storeOwn("fake two", for: "two")
        }
        try mine.merge(third.file)
        try returnThird(to: earlier)
        #expect(try third.merge(mine.file).remaining == 0)
        #expect(try mine.merge(third.file).remaining == 0)
        try mergeInTurn()
        try third.use { vault in
            try vault.unlock(with: words)
            #expect(try vault.value(of: "one") == "fake one")
            #expect(try vault.value(of: "two") == "fake two")
        }
    }

    /// The same device: keys that it has renewed do not give way to those from before.
    @Test func renewedKeysStayOfADeviceThatStaysEnrolled() throws {
        let id = try stayInEarlierEnrolment()
        let (renewed, behind) = (TestDevice(), TestDevice())
        try behind.receive(third.file)
        try behind.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        try third.receive(behind.file)
        try third.use { try $0.store("fake", for: "third") }
        try renewed.receive(third.file)
        try behind.use { try $0.store("fake", for: "behind") }
        #expect(try renewed.merge(behind.file).remaining == 0)
        // The first device has not opened the vault since, so only its set is behind.
        let set = try Keybag(
            decoding: Array(renewed.file[VaultFormat.keybagLength..<2 * VaultFormat.keybagLength])
        )
        .sets.first { $0.device.hexadecimal == id }
        #expect(set != nil && set?.olderRoots == nil)
    }
}
