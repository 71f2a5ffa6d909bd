import Testing
import TokenVault

@testable import TokenVaultFile

/// A merge with a file in which a device was removed. The merge removes the device's items only where the other file
/// had them.
@Suite struct RemovedDeviceTests {
    private let mine = TestDevice()
    private let other = TestDevice()
    private let third = TestDevice()

    /// All three devices have the vault with the item "both"; the third device is enrolled.
    private func create() throws {
        try mine.create()
        try mine.use { try $0.store("fake first", for: "both") }
        try third.receive(mine.file)
        try third.use { _ = try $0.enrolDevice() }
        for device in [mine, other] {
            try device.receive(third.file)
            try device.use { _ = try $0.values() }
        }
    }

    /// The other device removes the third; returns the number of items that go with it.
    private func removeThird() throws -> Int {
        let id = try thirdID()
        return try other.use { try $0.removeDevice(id) }
    }

    @Test func aDeviceThatStoredSinceItWasRemovedStays() throws {
        try create()
        try third.use { try $0.storeOwn("fake own", for: "private") }
        try mine.merge(third.file)
        #expect(try removeThird() == 0)
        let report = try mine.merge(other.file)
        #expect(report.deleted == 0 && report.items == 2, "\(report)")
        #expect(report.notes.contains { $0.contains("stays enrolled") }, "\(report.notes)")
        #expect(failure { try mine.use { _ = try $0.value(of: "private") } }?.code == .wrongDevice)
        #expect(try third.merge(mine.file).deleted == 0)
        #expect(try third.use { try $0.value(of: "private") } == "fake own")
        // The other device's file does not claim to have the item.
        #expect(try other.merge(mine.file).remaining == 1)
        #expect(try third.merge(other.file).deleted == 0)
        #expect(try third.use { try $0.value(of: "private") } == "fake own")
    }

    /// A device that comes and goes again and again takes one place in the list of those that were removed.
    @Test func manyRemovalsOfOneDeviceForgetNoOther() throws {
        try create()
        let before = third.file
        let id = try thirdID()
        try mine.use { _ = try $0.removeDevice(id) }
        for round in 1...Keybag.mostRemovedDevices {
            var guest = other
            guest.secondsAhead = Double(round)
            try guest.receive(mine.file)
            try guest.use { _ = try $0.enrolDevice() }
            try mine.receive(guest.file)
            let devices = try guest.use { try $0.devices() }
            let own = try #require(devices.first(where: \.isThisDevice)?.id)
            try mine.use { _ = try $0.removeDevice(own) }
        }
        try third.receive(before)
        try third.use { try $0.storeOwn("fake own", for: "private") }
        try mine.merge(third.file)
        #expect(try !mine.use { try $0.devices() }.contains { $0.id == id })
    }

    /// The keys were rotated where the device stays. That file can only be taken whole, with the device.
    @Test func aRemovedDeviceDoesNotComeBackWithARotation() throws {
        try create()
        try third.use { try $0.storeOwn("fake own", for: "private") }
        try mine.merge(third.file)
        #expect(try removeThird() == 0)
        try mine.merge(other.file)
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        let error = failure { try other.merge(mine.file) }
        #expect(error?.code == .conflict, "\(String(describing: error))")
        #expect(error?.reason == .ancestry(.removedDeviceInCopy))
        let id = try thirdID()
        #expect(try !other.use { try $0.devices() }.contains { $0.id == id })
        // Follows the advice of the error.
        #expect(try mine.use { try $0.removeDevice(id) } == 1)
        #expect(try other.merge(mine.file).remaining == 0)
        #expect(other.file == mine.file)
    }

    /// The removed device replaces a portable value by one that only it can read.
    @Test func aPortableValueStaysBesideTheDevicesOwn() throws {
        try create()
        try third.use { try $0.storeOwn("fake own", for: "both") }
        try mine.merge(third.file)
        _ = try removeThird()
        try mine.merge(other.file)
        #expect(failure { try mine.use { _ = try $0.value(of: "both") } }?.code == .wrongDevice)
        #expect(try other.merge(mine.file).deleted == 0)
        #expect(try other.use { try $0.value(of: "both") } == "fake first")
        #expect(try third.use { try $0.value(of: "both") } == "fake own")
    }

    /// The other device has had the item when it removed its device.
    @Test(arguments: [false, true]) func whatTheOtherDeviceHasSeenGoesWithIt(isReplaced: Bool) throws {
        try create()
        try third.use { try $0.storeOwn("fake own", for: "private") }
        for device in [mine, other] { try device.merge(third.file) }
        #expect(try removeThird() == 1)
        if isReplaced { try other.use { try $0.store("fake new", for: "private") } }
        let report = try mine.merge(other.file)
        #expect(report.deleted == (isReplaced ? 0 : 1), "\(report)")
        #expect(report.items == (isReplaced ? 2 : 1), "\(report)")
        #expect(report.notes.contains { $0.contains("is removed, as in the copy") }, "\(report.notes)")
        let value = try mine.use { try $0.value(of: "private") }
        #expect(value == (isReplaced ? "fake new" : nil))
        #expect(try mine.use { try $0.devices().count } == 1)
    }

    /// The file that removed the device still has its item: a crash came before that was deleted.
    @Test func anItemWithoutItsDeviceCountsAsAbsent() throws {
        try create()
        try third.use { try $0.storeOwn("fake own", for: "private") }
        for device in [mine, other] { try device.merge(third.file) }
        try other.use { vault in
            let id = try thirdID()
            let session = try vault.session()
            let roots = try vault.heldRoots(session)
            try vault.replaceKeybag(session, roots: roots) { keybag in
                guard let set = keybag.sets.first(where: { $0.device.hexadecimal == id }) else { return }
                keybag.removeDevice(set)
            }
        }
        let report = try mine.merge(other.file)
        #expect(report.deleted == 1 && report.items == 1 && report.remaining == 0, "\(report)")
        #expect(try mine.use { try $0.value(of: "private") } == nil)
    }

    /// Removes the third device elsewhere, after this one has taken an item from it. The third device takes
    /// that file and enrols again. It brings its item along, under new keys.
    private func enrolAgain() throws {
        try create()
        try third.use { try $0.storeOwn("fake own", for: "private") }
        let before = third.file
        try mine.merge(before)
        try mine.use { try $0.store("fake mine", for: "mine") }
        _ = try removeThird()
        try third.receive(other.file)
        try third.adopt()
        try third.use { _ = try $0.enrolDevice() }
        #expect(try third.merge(before).taken == 1)
        #expect(try third.use { try $0.value(of: "private") } == "fake own")
    }

    @Test func anItemUnderTheKeysOfANewEnrolmentIsTaken() throws {
        try enrolAgain()
        let report = try mine.merge(third.file)
        #expect(report.deleted == 0 && report.remaining == 0 && report.items == 3, "\(report)")
        try third.receive(mine.file)
        #expect(try third.use { try $0.value(of: "private") } == "fake own")
        #expect(try third.use { try $0.value(of: "mine") } == "fake mine")
    }

    /// After a key rotation here, the new enrolment cannot be taken. The earlier enrolment keeps its item.
    /// What the device stored since stays in the copy.
    @Test(arguments: [false, true]) func anEarlierEnrolmentStaysAfterARotation(hasStored: Bool) throws {
        try enrolAgain()
        if hasStored { try third.use { try $0.storeOwn("fake new", for: "new") } }
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        let report = try mine.merge(third.file)
        #expect(report.deleted == 0 && report.remaining == (hasStored ? 1 : 0), "\(report)")
        #expect(report.notes.contains { $0.contains("stays enrolled") }, "\(report.notes)")
        let theirs = third.file
        try third.receive(mine.file)
        if hasStored {
            #expect(failure { try third.use { _ in } }?.code == .forked)
            #expect(try third.merge(theirs).remaining == 0)
            #expect(try third.use { try $0.value(of: "new") } == "fake new")
        }
        #expect(try third.use { try $0.value(of: "private") } == "fake own")
        #expect(try third.use { try $0.value(of: "mine") } == "fake mine")
    }

    private func thirdID() throws -> VaultDevice.ID {
        let devices = try third.use { try $0.devices() }
        return try #require(devices.first { $0.isThisDevice }?.id)
    }
}
