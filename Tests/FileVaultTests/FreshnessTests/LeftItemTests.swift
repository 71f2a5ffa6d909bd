import Testing
import TokenVault

@testable import TokenVaultFile

/// A merge on a device that has no keys for some of the copy's items leaves these in the copy. The merged file
/// notes which.
@Suite struct LeftItemTests {
    private let mine = TestDevice()
    private let other = TestDevice()

    /// Both devices have the vault with items "both" and "kept".
    private func create() throws {
        try mine.create()
        try mine.use { vault in
            for key in ["both", "kept"] { try vault.store("fake \(key)", for: key) }
        }
        try other.receive(mine.file)
        try other.use { _ = try $0.values() }
    }

    /// Both devices store the item "private", each for itself.
    private func begin() throws {
        try create()
        try other.use { vault in
            _ = try vault.enrolDevice()
            try vault.storeOwn("fake own", for: "private")
            try vault.store("fake other", for: "of the other")
        }
        try mine.use { try $0.storeOwn("fake mine", for: "private") }
    }

    /// The values that the other device reads of "private", under any key.
    private func ownValues() throws -> Set<String> {
        try other.use { Set(try $0.listedValues("private")) }
    }

    /// What no key here opens stays in the copy. It is counted, and the file does not claim to have it.
    @Test func whatCannotBeTakenIsCountedAndNotClaimed() throws {
        try begin()
        let copy = other.file
        let report = try mine.merge(copy)
        #expect(report.taken == 1 && report.remaining == 1 && report.conflicts.isEmpty, "\(report)")
        #expect(try mine.use { try $0.value(of: "of the other") } == "fake other")
        #expect(try mine.use { try $0.value(of: "both") } == "fake both")
        let again = try mine.merge(copy)
        #expect(again.isUpToDate && again.remaining == 1 && again.replaced == nil, "\(again)")
        #expect(try mine.use { try $0.hasNoteOnLeftValues() })
        // The item's own device still has the item, and notices that this file lacks it.
        let theirs = other.file
        try other.receive(mine.file)
        #expect(failure { try other.use { _ in } }?.code == .forked)
        try other.receive(theirs)
        #expect(try other.use { try $0.value(of: "private") } == "fake own")
    }

    /// What a merge took beside an item that it left is no deleted item.
    @Test func whatAMergeTookBesideALeftItemStays() throws {
        try create()
        try other.use { vault in
            _ = try vault.enrolDevice()
            for key: TokenKey in ["own", "both own"] { try vault.storeOwn("fake", for: key) }
        }
        try mine.use { vault in
            try vault.storeOwn("fake mine", for: "both own")
            for index in 0..<12 { try vault.store("fake", for: "mine \(index)") }
        }
        let third = TestDevice()
        try third.receive(mine.file)
        try third.use { try $0.store("fake", for: "third") }
        let left = try mine.merge(other.file)
        #expect(left.remaining == 1 && left.taken == 1, "\(left)")
        let report = try mine.merge(third.file)
        #expect(report.deleted == 0 && report.taken == 1, "\(report)")
        #expect(failure { try mine.use { _ = try $0.value(of: "own") } }?.code == .wrongDevice)
    }

    /// An item that the merging device could not open keeps its own commit. The device that can open the item
    /// loses nothing in its next merge, in either direction.
    @Test(arguments: [true, false]) func itemsThatAMergeElsewhereCouldNotOpenStay(isInPlace: Bool) throws {
        let third = TestDevice()
        try mine.create()
        try mine.use { try $0.storeOwn("fake old", for: "changed") }
        for device in [other, third] {
            try device.receive(mine.file)
            try device.use { _ = try? $0.values() }
        }
        try mine.use { vault in
            try vault.storeOwn("fake new", for: "changed")
            try vault.storeOwn("fake", for: "new")
        }
        let own = mine.file
        try other.use { vault in for index in 0..<8 { try vault.store("fake", for: "other \(index)") } }
        try third.receive(other.file)
        try third.use { try $0.store("fake", for: "third") }
        _ = try other.merge(own)
        try mine.receive(other.file)
        #expect(try mine.use { try $0.value(of: "new") } == "fake")
        if isInPlace {
            #expect(try mine.merge(third.file).deleted == 0)
        } else {
            let seen = mine.file
            try mine.receive(third.file)
            _ = try mine.merge(seen)
        }
        #expect(try mine.use { try $0.value(of: "new") } == "fake")
        #expect(try mine.use { try $0.value(of: "changed") } == "fake new")
        #expect(try mine.use { try $0.value(of: "third") } == "fake")
    }

    /// Each file has seen both values, and neither has the other's. This device can neither open the other device's
    /// value nor, so, rename it: its own moves, once.
    @Test(arguments: [true, false]) func aValueThatCannotBeRenamedKeepsItsKey(hasCopy: Bool) throws {
        try create()
        try other.use { vault in
            _ = try vault.enrolDevice()
            try vault.storeOwn("fake own", for: "private")
        }
        try mine.use { try $0.store("fake mine", for: "private") }
        let before = other.file
        #expect(try mine.merge(before).remaining == 1)
        let conflict = try #require(try other.merge(mine.file).conflicts.first)
        if !hasCopy { try other.use { try $0.delete(conflict.keptAs.name) } }
        let settled = other.file
        other.forgetAnchor()
        try other.receive(before)
        try other.use { try $0.delete("private") }
        #expect(try mine.merge(other.file).remaining == 0)

        let report = try mine.merge(settled)
        #expect(report.remaining == 0 && report.conflicts.count == (hasCopy ? 0 : 1), "\(report)")
        #expect(report.conflicts.allSatisfy { $0.isVaultsValueMoved })
        let merged = mine.file
        #expect(try mine.merge(settled).isUpToDate && mine.file == merged)
        #expect(failure { try mine.use { _ = try $0.value(of: "private") } }?.code == .wrongDevice)
        #expect(try mine.use { try $0.listedValues("private") } == ["fake mine"])
        try other.receive(merged)
        #expect(try ownValues() == ["fake own", "fake mine"])
    }

    /// Each file has another device's value under a key that the other file has dropped. What this device cannot open
    /// it cannot compare either: it stays, in the vault where its key is free, and else in the copy.
    @Test(arguments: [false, true])
    func aValueOfAnotherDeviceThatBothFilesHaveStays(isKeyInUse: Bool) throws {
        try create()
        try other.use { _ = try $0.enrolDevice() }
        try mine.receive(other.file)
        try mine.use { try $0.store("fake mine", for: "private") }
        try other.use { try $0.storeOwn("fake own", for: "private") }
        let (ours, theirs) = (mine.file, other.file)
        _ = try other.merge(ours)
        let first = other.file
        #expect(try mine.merge(theirs).remaining == 1)
        // The other device goes back to the earlier file, and resolves the conflict with the roles exchanged.
        other.forgetAnchor()
        try other.receive(mine.file)
        let conflicts = try other.merge(theirs).conflicts
        let moved = try #require(conflicts.first).keptAs
        let second = other.file
        try mine.receive(second)
        other.forgetAnchor()
        try other.receive(first)
        _ = try other.merge(second)
        if isKeyInUse { try other.use { try $0.store("fake other", for: moved.name) } }
        let copy = other.file
        try mine.use { try $0.store("fake newer", for: "private") }
        let report = try mine.merge(copy)
        #expect(report.remaining == (isKeyInUse ? 1 : 0), "\(report)")
        #expect(try mine.use { try $0.value(of: "private") } == "fake newer", "\(report)")
        let merged = mine.file
        try other.receive(merged)
        if isKeyInUse {
            // The documentation says so: an item that stayed in the copy is merged on the device that stored
            // it.
            #expect(failure { try other.use { _ in } }?.code == .forked)
            _ = try other.merge(copy)
        }
        #expect(try ownValues().isSuperset(of: ["fake own", "fake newer"]))
    }

    /// The file can note only so many values that stay in copies. A merge that would leave more of those whose commits
    /// it counts as seen is refused: the next one would take them for deleted.
    @Test(arguments: [0, 1])
    func aMergeThatCouldNotNoteWhatItLeavesIsRefused(more: Int) throws {
        let numbers = 0..<Ancestry.mostLeftValues + more
        func store(_ value: String, _ vault: BlockingFileVault, _ policy: AccessPolicy, _ keys: [TokenKey])
            throws
        {
            _ = try vault.storage(service: SimulatedVault.service).commit(
                keys.map { .store(Secret(utf8: value), for: $0, details: TokenDetails(policy: policy)) })
        }
        let keys = numbers.map { TokenKey("private \($0)") }
        try create()
        try other.use { _ = try $0.enrolDevice() }
        try mine.receive(other.file)
        try mine.use { try store("fake mine", $0, .whenUnlocked, keys) }
        try other.use { try store("fake own", $0, .whenUnlockedThisDeviceOnly, keys) }
        let (ours, theirs) = (mine.file, other.file)
        _ = try other.merge(ours)
        let first = other.file
        #expect(try mine.merge(theirs).remaining == numbers.count)
        other.forgetAnchor()
        try other.receive(mine.file)
        let conflicts = try other.merge(theirs).conflicts
        let second = other.file
        try mine.receive(second)
        other.forgetAnchor()
        try other.receive(first)
        _ = try other.merge(second)
        try other.use { try store("fake other", $0, .whenUnlocked, conflicts.map(\.keptAs)) }
        try mine.use { try store("fake newer", $0, .whenUnlocked, keys) }
        let before = mine.file
        guard more > 0 else {
            #expect(try mine.merge(other.file).remaining == numbers.count)
            return
        }
        for isRehearsal in [true, false] {
            let refused = failure { try mine.merge(other.file, isRehearsal: isRehearsal) }
            #expect(refused?.reason == .ancestry(.tooManyLeft) && refused?.code == .conflict)
        }
        #expect(mine.file == before)
    }

    /// The same copy again brings back nothing that was deleted since, and keeps nothing twice again.
    @Test func aSecondMergeOfTheCopyTakesNothingAgain() throws {
        try begin()
        try other.use { try $0.store("fake theirs", for: "both") }
        try mine.use { try $0.store("fake ours", for: "both") }
        let copy = other.file
        let first = try mine.merge(copy)
        #expect(first.remaining == 1 && first.conflicts.count == 1, "\(first)")
        try mine.use { vault in
            try vault.delete("of the other")
            for conflict in first.conflicts { try vault.delete(conflict.keptAs.name) }
            _ = try vault.compact()
        }
        let before = mine.file
        let second = try mine.merge(copy)
        #expect(second.isUpToDate && second.remaining == 1 && second.taken == 0, "\(second)")
        #expect(mine.file == before)
        #expect(try mine.use { try $0.listedKeys() } == ["both", "kept", "private"])
    }

    /// The device that stored the item merges the file, and still has it. The device that left it does not.
    @Test func itsDeviceKeepsIt() throws {
        try begin()
        #expect(try mine.merge(other.file).remaining == 1)
        let report = try other.merge(mine.file)
        #expect(report.remaining == 1 && report.deleted == 0, "\(report)")
        #expect(try ownValues() == ["fake own"])
        #expect(try other.use { try $0.value(of: "of the other") } == "fake other")
        // Each device keeps its own value, and neither file replaces the other.
        for _ in 1...2 {
            #expect(try mine.merge(other.file).remaining == 1)
            #expect(try other.merge(mine.file).remaining == 1)
        }
        #expect(try ownValues() == ["fake own"])
        #expect(try mine.use { try $0.value(of: "private") } == "fake mine")
        let (ours, theirs) = (mine.file, other.file)
        for (device, file) in [(other, ours), (mine, theirs)] {
            try device.receive(file)
            let refused = try #require(failure { try device.use { _ in } })
            #expect(refused.code == .forked || refused.code == .rolledBack)
        }
    }

    /// When the item is deleted on one side, the other's value is all that is left, and the files become the
    /// same.
    @Test func aDeletionOnOneSideSettlesIt() throws {
        try begin()
        _ = try mine.merge(other.file)
        try mine.use { try $0.delete("private") }
        let report = try other.merge(mine.file)
        #expect(report.remaining == 0 && report.deleted == 0, "\(report)")
        #expect(try ownValues() == ["fake own"])
        #expect(try mine.merge(other.file).remaining == 0)
        #expect(try other.merge(mine.file).isUpToDate && mine.file == other.file)
    }

    /// Both stored the same value beside a left item. A copy brings back neither a deleted nor a replaced one.
    @Test(arguments: [true, false]) func anEqualValueIsNotTakenLater(isDeleted: Bool) throws {
        try begin()
        _ = try mine.merge(other.file)
        for device in [mine, other] { try device.use { try $0.store("fake same", for: "same") } }
        let copy = other.file
        _ = try mine.merge(copy)
        try mine.use { vault in
            if isDeleted { try vault.delete("same") } else { try vault.store("fake newer", for: "same") }
        }
        let report = try mine.merge(copy)
        #expect(report.taken == 0 && report.conflicts.isEmpty, "\(report)")
        #expect(try mine.use { try $0.value(of: "same") } == (isDeleted ? nil : "fake newer"))
    }

    /// The file of the other device lies at this one's path, where it is refused. What this device has seen is
    /// in a copy, with an item that it has no keys for.
    @Test func aRefusedFileTakesWhatThisDeviceHasSeen() throws {
        try begin()
        let third = TestDevice()
        try third.receive(mine.file)
        try third.use { try $0.store("fake third", for: "third") }
        let seen = third.file
        try third.receive(other.file)
        #expect(failure { try third.use { _ in } }?.code == .forked)
        let report = try third.merge(seen)
        #expect(report.remaining == 1, "\(report)")
        #expect(try third.use { try $0.value(of: "third") } == "fake third")
        // The file does not claim the item that it left out, so the item's device does not open the file.
        try mine.receive(third.file)
        #expect(failure { try mine.use { _ in } }?.code == .forked)
    }

    /// A device whose item was left does not get past that by a merge of any other file.
    @Test func aMergeOfAnotherFileDoesNotSettleIt() throws {
        try begin()
        let third = TestDevice()
        try third.receive(mine.file)
        _ = try third.merge(other.file)
        try third.use { try $0.store("fake third", for: "third") }
        let own = other.file
        try other.receive(third.file)
        let refused = try #require(failure { try other.merge(mine.file) })
        #expect(refused.reason == .ancestry(.neitherHasAll))
        _ = try other.merge(own)
        #expect(try ownValues() == ["fake own"])
    }

    /// The file at the path has another device's item under the key of an item of this device.
    @Test func anOwnItemIsKeptBesideAnotherDevices() throws {
        try begin()
        let seen = other.file
        try other.receive(mine.file)
        let report = try other.merge(seen)
        #expect(report.remaining == 0 && report.conflicts.map(\.key) == ["private"], "\(report)")
        #expect(try ownValues() == ["fake own"])
        // The conflict appears only once.
        #expect(try other.merge(seen).isUpToDate)
        #expect(try mine.merge(other.file).remaining == 0)
        #expect(try mine.use { try $0.value(of: "private") } == "fake mine")
    }

    /// A value that was left, and then replaced on its device, is not missed any more.
    @Test func aLaterValueOfALeftItemIsTheOneThatCounts() throws {
        try begin()
        _ = try mine.merge(other.file)
        try other.use { try $0.storeOwn("fake newer", for: "private") }
        let old = other.file
        _ = try other.merge(mine.file)
        let again = try other.merge(old)
        #expect(again.isUpToDate && again.remaining == 0, "\(again)")
        #expect(try ownValues() == ["fake newer"])
    }

    /// The keys were rotated here, so that the other device's enrolment cannot be taken. Its items come back
    /// when it has enrolled again.
    @Test func itemsComeBackAfterARotation() throws {
        try create()
        try other.use { vault in
            _ = try vault.enrolDevice()
            try vault.storeOwn("fake own", for: "private")
        }
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        #expect(try mine.merge(other.file).remaining == 1)
        let before = other.file
        #expect(failure { try other.merge(mine.file) }?.reason == .ancestry(.keysRotatedInCopy))
        try other.receive(mine.file)
        try other.adopt()
        try other.use { _ = try $0.enrolDevice() }
        let report = try other.merge(before)
        #expect(report.remaining == 0 && report.taken == 1, "\(report)")
        #expect(try ownValues() == ["fake own"])
        #expect(try mine.merge(other.file).remaining == 0)
        #expect(mine.file == other.file)
    }

    /// The note of what was left goes along with every file that descends from the merged one.
    @Test func theNoteOutlivesCompactionAndOtherMerges() throws {
        try begin()
        let copy = other.file
        _ = try mine.merge(copy)
        let third = TestDevice()
        try third.receive(mine.file)
        try third.use { vault in
            try vault.store("fake third", for: "third")
            _ = try vault.compact()
        }
        try mine.use { try $0.store("fake mine", for: "mine") }
        _ = try mine.merge(third.file)
        // No file says that the item was deleted, so its device keeps the item.
        let report = try other.merge(mine.file)
        #expect(report.deleted == 0 && report.remaining == 1, "\(report)")
        #expect(try ownValues() == ["fake own"])
    }

    /// The same where the rotated file lies at the path of the device whose items are at stake.
    @Test func ownItemsComeBackAfterARotationAtThePath() throws {
        try create()
        try other.use { vault in
            _ = try vault.enrolDevice()
            try vault.storeOwn("fake own", for: "private")
            try vault.store("fake other", for: "of the other")
        }
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        let seen = other.file
        try other.receive(mine.file)
        let first = try other.merge(seen)
        #expect(first.remaining == 1 && first.taken == 1 && first.notes.count == 2, "\(first)")
        #expect(first.notes.contains { $0.contains("device enrol") })
        #expect(try other.use { try $0.hasNoteOnLeftValues() })
        try other.use { _ = try $0.enrolDevice() }
        let second = try other.merge(seen)
        #expect(second.remaining == 0 && second.taken == 1, "\(second)")
        #expect(try other.use { try !$0.hasNoteOnLeftValues() })
        #expect(try ownValues() == ["fake own"])
    }
}

extension BlockingFileVault {
    /// Whether the status tells that merges left values in their copies.
    fileprivate func hasNoteOnLeftValues() throws -> Bool {
        try status().notes.contains { $0.hasPrefix("1 value stayed in the merged files") }
    }
}
