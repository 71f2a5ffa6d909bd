import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// Two files of one vault that were written to apart become one again.
@Suite struct MergeTests {
    private let mine = TestDevice()
    private let other = TestDevice()

    /// Both devices have the vault with items "both" and "gone".
    private func begin() throws {
        try mine.create()
        try mine.use { vault in
            for key in ["both", "gone", "kept"] { try vault.store("fake \(key)", for: key) }
        }
        try other.receive(mine.file)
        try other.use { _ = try $0.values() }
    }

    /// Both sides change what they have.
    private func part() throws {
        try other.use { vault in
            try vault.store("fake other", for: "of the other")
            try vault.store("fake newer", for: "kept")
            try vault.delete("gone")
            _ = try vault.compact()
        }
        try mine.use { try $0.store("fake important", for: "important") }
    }

    private let merged = [
        "both": "fake both", "kept": "fake newer", "important": "fake important",
        "of the other": "fake other",
    ]

    @Test func whatOneSideChangedIsTaken() throws {
        try begin()
        try part()
        let before = mine.file
        let rehearsal = try mine.merge(other.file, isRehearsal: true)
        #expect(mine.file == before)
        let report = try mine.merge(other.file)
        for report in [rehearsal, report] {
            #expect(report.taken == 2 && report.deleted == 1 && report.items == 4)
            #expect(report.conflicts.isEmpty && report.remaining == 0 && !report.isUpToDate)
        }
        #expect(report.replaced != nil && rehearsal.replaced == nil)
        #expect(try mine.use { try $0.values() } == merged)
        #expect(try mine.use { try $0.verify().isClean })
        // The other device accepts the merged file as well, and writes to it.
        try other.receive(mine.file)
        #expect(try other.use { try $0.values() } == merged)
        try other.use { try $0.store("fake", for: "next") }
        try mine.receive(other.file)
        #expect(try mine.use { try $0.values() }.count == 5)
    }

    /// The file of the other device is at the vault's path, where it is refused.
    @Test func aFileThatIsRefusedTakesWhatThisDeviceHasSeen() throws {
        try begin()
        try part()
        let seen = mine.file
        try mine.receive(other.file)
        #expect(failure { try mine.use { _ in } }?.code == .forked)
        _ = try mine.merge(seen)
        #expect(try mine.use { try $0.values() } == merged)
    }

    /// A device that only follows another one has changed nothing itself, however often it merges.
    @Test func aDeviceThatFollowsHasNoConflicts() throws {
        try begin()
        for value in ["fake first", "fake second", "fake third"] {
            try mine.use { vault in
                try vault.store(value, for: "both")
                try vault.store(value, for: "new")
            }
            let report = try other.merge(mine.file)
            #expect(report.conflicts.isEmpty && report.taken == 2, "\(report)")
            #expect(Set(report.takenNames.map(\.key)) == ["both", "new"])
            #expect(try other.use { try $0.value(of: "both") } == value)
        }
    }

    /// Also where the deleted item came by a merge, and in both directions.
    @Test func aDeletionHoldsAfterEarlierMerges() throws {
        try begin()
        try mine.use { try $0.store("fake", for: "short-lived") }
        _ = try other.merge(mine.file)
        try mine.use { try $0.delete("short-lived") }
        _ = try mine.merge(other.file)
        #expect(try mine.use { try $0.value(of: "short-lived") } == nil)
        let report = try other.merge(mine.file)
        #expect(report.deleted == 1 && report.deletedNames.map(\.key) == ["short-lived"], "\(report)")
        #expect(try other.use { try $0.value(of: "short-lived") } == nil)
    }

    @Test func filesThatMergeEachOtherBecomeTheSame() throws {
        try begin()
        try part()
        _ = try mine.merge(other.file)
        let taken = try other.merge(mine.file)
        #expect(taken.taken == 1 && taken.conflicts.isEmpty && taken.replaced != nil, "\(taken)")
        #expect(try other.use { try $0.values() } == merged)
        #expect(try other.use { try $0.verify().isClean })
        for _ in 1...2 {
            #expect(try mine.merge(other.file).isUpToDate)
            #expect(try other.merge(mine.file).isUpToDate)
        }
    }

    /// The other side takes over what a merge decided, and keeps nothing twice again.
    @Test func aConflictIsSettledOnce() throws {
        try begin()
        try other.use { try $0.store("fake theirs", for: "both") }
        try mine.use { try $0.store("fake ours", for: "both") }
        #expect(try mine.merge(other.file).conflicts.count == 1)
        let report = try other.merge(mine.file)
        #expect(report.conflicts.isEmpty && report.taken == 2, "\(report)")
        let values = try mine.use { try $0.values() }
        #expect(try other.use { try $0.values() } == values && values["both"] == "fake ours")
    }

    @Test func aMergeIsDoneOnce() throws {
        try begin()
        try part()
        let copy = other.file
        _ = try mine.merge(copy)
        let after = mine.file
        let again = try mine.merge(copy)
        #expect(again.isUpToDate && again.replaced == nil && again.taken == 0 && mine.file == after)
    }

    @Test func whatBothChangedIsKeptTwice() throws {
        try begin()
        try other.use { vault in
            try vault.storage(service: SimulatedVault.service).store(
                token: "fake theirs", for: "both", policy: .afterFirstUnlock)
            try vault.store("fake same", for: "kept")
            try vault.delete("gone")
        }
        try mine.use { vault in
            try vault.store("fake ours", for: "both")
            try vault.store("fake same", for: "kept")
            try vault.store("fake stored again", for: "gone")
        }
        let report = try mine.merge(other.file)
        let conflict = try #require(report.conflicts.first)
        #expect(report.conflicts.count == 1 && conflict.key == "both" && report.deleted == 0)
        #expect(conflict.keptAs.name.hasPrefix("both (conflict "))
        let values = try mine.use { try $0.values() }
        #expect(values["both"] == "fake ours" && values[conflict.keptAs.name] == "fake theirs")
        #expect(values["kept"] == "fake same" && values["gone"] == "fake stored again" && values.count == 4)
        // Each value keeps the policy that its own device chose.
        #expect(try mine.use { try $0.metadata(of: "both")?.policy } == .whenUnlocked)
        #expect(try mine.use { try $0.metadata(of: conflict.keptAs.name)?.policy } == .afterFirstUnlock)
    }

    @Test func aLongKeyIsCutForTheConflict() throws {
        let key = String(repeating: "ü", count: TokenKey.maximumLength / 2)
        try begin()
        try other.use { try $0.store("fake theirs", for: key) }
        try mine.use { try $0.store("fake ours", for: key) }
        let report = try mine.merge(other.file)
        let kept = try #require(report.conflicts.first?.keptAs.name)
        #expect(kept.utf8.count <= TokenKey.maximumLength)
        #expect(try mine.use { try $0.value(of: kept) } == "fake theirs")
    }

    /// Items for one device only: this device's own are its own still, and those of another device reach it.
    @Test func itemsOfDevicesStayTheirs() throws {
        try begin()
        try other.use { vault in
            _ = try vault.enrolDevice()
            try vault.storage(service: SimulatedVault.service).store(
                token: "fake for the other", for: "private", policy: .whenUnlockedThisDeviceOnly)
        }
        try mine.use { vault in
            try vault.storage(service: SimulatedVault.service).store(
                token: "fake for this one", for: "mine", policy: .whenUnlockedThisDeviceOnly)
        }
        let report = try mine.merge(other.file)
        #expect(report.remaining == 0 && report.notes.count == 1, "\(report)")
        #expect(try mine.use { try $0.value(of: "mine") } == "fake for this one")
        #expect(failure { try mine.use { _ = try $0.value(of: "private") } }?.code == .wrongDevice)
        try other.receive(mine.file)
        #expect(try other.use { try $0.value(of: "private") } == "fake for the other")
        #expect(try other.use { try $0.metadata(of: "private") }?.policy == .whenUnlockedThisDeviceOnly)
        #expect(failure { try other.use { _ = try $0.value(of: "mine") } }?.code == .wrongDevice)
    }

    /// The key of the slot that was removed opens nothing of the file.
    private func expectLockedOut(of device: TestDevice) throws {
        let leaked = try VaultCopy.open(
            at: SimulatedVault.location(on: device.disk),
            configuration: SimulatedVault.configuration(tailBound: 6))
        #expect(failure { try leaked.unlock(with: SimulatedVault.key("second")) }?.code == .wrongPassphrase)
    }

    /// The vault got a new root on this side: what the copy has comes under it, and the old slot opens nothing.
    @Test func aRevocationHolds() throws {
        try begin()
        var slot: Int?
        try mine.use { slot = try $0.addSlot(SimulatedVault.key("second"), scope: .all).id }
        try other.receive(mine.file)
        try other.use { try $0.store("fake other", for: "of the other") }
        try mine.use { vault in
            _ = try vault.rotateKeys(keeping: [TestDevice.key], removing: [slot ?? 0])
            try vault.store("fake after", for: "after")
        }
        let report = try mine.merge(other.file)
        #expect(report.taken == 1 && report.remaining == 0)
        #expect(try mine.use { try $0.value(of: "of the other") } == "fake other")
        try expectLockedOut(of: mine)
    }

    /// The copy locked a slot out. A merge into the file that still has the slot would open the copy's items
    /// with it.
    @Test func aRevocationInTheCopyIsNotUndone() throws {
        try begin()
        var slot: Int?
        try mine.use { slot = try $0.addSlot(SimulatedVault.key("second"), scope: .all).id }
        try other.receive(mine.file)
        try other.use { vault in
            _ = try vault.rotateKeys(keeping: [TestDevice.key], removing: [slot ?? 0])
            try vault.store("fake after", for: "after")
        }
        let before = mine.file
        // A file without changes of its own becomes the copy, including the keys.
        let follower = TestDevice()
        try follower.receive(before)
        try follower.use { _ in }
        _ = try follower.merge(other.file)
        #expect(follower.file == other.file)
        try mine.use { try $0.store("fake mine", for: "mine") }
        for isRehearsal in [true, false] {
            let refused = failure { _ = try mine.merge(other.file, isRehearsal: isRehearsal) }
            #expect(
                refused?.code == .conflict && refused?.reason == .ancestry(.keysRotatedInCopy),
                "\(refused as Any)")
        }
        // A merge in the other direction keeps the revocation.
        let report = try other.merge(mine.file)
        #expect(report.taken == 1 && report.remaining == 0, "\(report)")
        try expectLockedOut(of: other)
    }

    /// Also when both sides rotated their keys, each against another slot.
    @Test func aSlotThatTheCopyLockedOutIsRemovedFirst() throws {
        try begin()
        var slots: [Int] = []
        try mine.use { vault in
            for name in ["second", "third"] {
                slots.append(try vault.addSlot(SimulatedVault.key(name), scope: .all).id)
            }
        }
        try other.receive(mine.file)
        try other.use {
            _ = try $0.rotateKeys(
                keeping: [TestDevice.key, SimulatedVault.key("third")], removing: [slots[0]])
        }
        try mine.use { vault in
            _ = try vault.rotateKeys(
                keeping: [TestDevice.key, SimulatedVault.key("second")], removing: [slots[1]])
        }
        let refused = failure { _ = try mine.merge(other.file) }
        #expect(refused?.reason == .ancestry(.slotRemovedInCopy), "\(refused as Any)")
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key], removing: [slots[0]]) }
        #expect(try mine.merge(other.file).remaining == 0)
    }

    /// Both sides replaced a passphrase and rotated the keys: the later passphrase stays. Where the file with the other
    /// one is the vault, that slot is removed first, or the other file is made the vault.
    @Test(arguments: [false, true]) func ofTwoReplacedPassphrasesTheLaterStays(isRemoving: Bool) throws {
        let old = UnlockMethod.passphrase(Secret(utf8: "fake old"))
        var later = TestDevice()
        later.secondsAhead = 60
        try begin()
        try mine.use { _ = try $0.addSlot(old, scope: .all) }
        try later.receive(mine.file)
        func replace(_ device: TestDevice) throws {
            try device.use { vault in
                _ = try vault.rotatePassphrase(
                    Secret(utf8: "fake old"), replacedBy: Secret(utf8: "fake new"), keeping: [TestDevice.key])
            }
        }
        var earlier = mine
        earlier.secondsAhead = 30
        try replace(later)
        try replace(earlier)
        try later.use { try $0.store("fake later", for: "later") }
        let slot = try #require(try mine.use { try $0.slots().last?.id })
        #expect(failure { try mine.merge(later.file) }?.reason == .ancestry(.slotReplacedInCopy))
        let report: MergeReport
        if isRemoving {
            try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key], removing: [slot]) }
            #expect(try mine.merge(later.file).taken == 1)
            report = try later.merge(mine.file)
            #expect(
                report.notes.contains("slot \(slot) of the vault is removed, as in the copy"), "\(report)")
        } else {
            let merged = try later.merge(mine.file)
            #expect(
                merged.notes.contains("slot \(slot) of the vault is newer than the copy's, and stays"),
                "\(merged)")
            report = try mine.merge(later.file)
            #expect(
                report.notes.contains("slot \(slot) of the vault is replaced, as in the copy"), "\(report)")
        }
        #expect(report.notes.contains { $0.hasPrefix("the keys were rotated in the copy") }, "\(report)")
        #expect(later.file == mine.file)
    }

    /// The passphrase was replaced here, and the keys rotated. What the other side has stored meanwhile is taken.
    @Test func aPassphraseThatThisFileReplacedStays() throws {
        let (old, new) = (Secret(utf8: "fake old"), Secret(utf8: "fake new"))
        var later = mine
        later.secondsAhead = 60
        try begin()
        try mine.use { _ = try $0.addSlot(.passphrase(old), scope: .all) }
        try other.receive(mine.file)
        try other.use { try $0.store("fake other", for: "other") }
        try later.use { _ = try $0.rotatePassphrase(old, replacedBy: new, keeping: [TestDevice.key]) }
        #expect(try later.merge(other.file).taken == 1)
        #expect(try mine.use { try $0.value(of: "other") } == "fake other")
        let copy = try mine.copy()
        defer { copy.close() }
        #expect(failure { try copy.unlock(with: .passphrase(old)) }?.code == .wrongPassphrase)
        try copy.unlock(with: .passphrase(new))
        #expect(try other.merge(mine.file).remaining == 0)
        #expect(other.file == mine.file)
    }

    /// A merge with a file of many removals does not forget this file's own.
    @Test func aMergeKeepsThisFilesRemovals() throws {
        try begin()
        var keybag = try Keybag(decoding: Array(mine.file.prefix(VaultFormat.keybagLength)))
        func removed(_ numbers: Range<UInt8>) -> [Keybag.RemovedDevice] {
            numbers.map { Keybag.RemovedDevice(device: [UInt8](repeating: $0, count: 16), enrolled: 1) }
        }
        keybag.remember(removed: removed(1..<2))
        keybag.remember(removed: removed(2..<20))
        #expect(keybag.removedDevices.count == Keybag.mostRemovedDevices)
        #expect(keybag.removedDevices.contains(removed(1..<2)[0]))
        keybag.remember(removed: removed(30..<50))
        #expect(keybag.removedDevices.count == Keybag.mostRemovedDevices)
        #expect(keybag.removedDevices.count { $0.device[0] < 20 } == Keybag.mostRemovedDevices / 2)
    }

    /// A file that merged the rotation and never had the slot itself still knows that the slot has gone.
    @Test func aSlotStaysLockedOutThroughAThirdFile() throws {
        try begin()
        let third = TestDevice()
        var slot: Int?
        try mine.use { slot = try $0.addSlot(SimulatedVault.key("second"), scope: .all).id }
        try third.receive(mine.file)
        try third.use { vault in
            _ = try vault.rotateKeys(keeping: [TestDevice.key], removing: [slot ?? 0])
            try vault.store("fake third", for: "third")
        }
        // Because of the rotations, each next file has the newer keys.
        try other.use { vault in for _ in 1...4 { _ = try vault.rotateKeys(keeping: [TestDevice.key]) } }
        _ = try other.merge(third.file)
        try mine.use { vault in
            for _ in 1...12 {
                _ = try vault.rotateKeys(keeping: [TestDevice.key, SimulatedVault.key("second")])
            }
        }
        let refused = failure { _ = try mine.merge(other.file) }
        #expect(refused?.reason == .ancestry(.slotRemovedInCopy), "\(refused as Any)")
    }

    /// Slots and devices that one file alone has are named, whichever way the merge goes.
    @Test func slotsAndDevicesThatDifferAreNamed() throws {
        try begin()
        try other.use { _ = try $0.enrolDevice() }
        try mine.receive(other.file)
        try mine.use { vault in
            for device in try vault.devices() where !device.isThisDevice {
                _ = try vault.removeDevice(device.id)
            }
            _ = try vault.addSlot(SimulatedVault.key("second"), scope: .all)
        }
        try other.use { vault in
            try vault.storage(service: SimulatedVault.service).store(
                token: "fake", for: "own", policy: .whenUnlockedThisDeviceOnly)
            _ = try vault.addSlot(SimulatedVault.key("third"), scope: .all)
        }
        let report = try other.merge(mine.file)
        #expect(report.notes.count == 3 && report.remaining == 0, "\(report.notes)")
        #expect(
            report.notes.contains {
                $0.hasPrefix("this device (") && $0.hasSuffix(") was removed in the copy, but stays enrolled")
            })
        #expect(report.notes.contains("slot 2 of the vault is not in the copy, and stays"))
        #expect(report.notes.contains("slot 2 of the copy was not added"))
        #expect(try other.use { try $0.value(of: "own") } == "fake")
    }

    /// It was removed, and enrolled again since: an old copy that knows the removal takes nothing away.
    @Test func aDeviceThatCameBackStays() throws {
        try begin()
        try other.use { _ = try $0.enrolDevice() }
        try mine.receive(other.file)
        try mine.use { vault in
            for device in try vault.devices() where !device.isThisDevice {
                _ = try vault.removeDevice(device.id)
            }
        }
        let third = TestDevice()
        try third.receive(mine.file)
        try third.use { try $0.store("fake", for: "third") }
        try other.receive(mine.file)
        try other.adopt()
        try other.use { vault in
            _ = try vault.enrolDevice()
            try vault.storage(service: SimulatedVault.service).store(
                token: "fake own", for: "own", policy: .whenUnlockedThisDeviceOnly)
        }
        let report = try other.merge(third.file)
        #expect(report.taken == 1 && report.remaining == 0 && report.notes.isEmpty, "\(report)")
        #expect(try other.use { try $0.value(of: "own") } == "fake own")
        // A merge in the other direction works as well.
        let back = try third.merge(other.file)
        #expect(back.remaining == 0, "\(back)")
        #expect(try third.use { try $0.devices().count } == 2)
    }

    /// A value that one side replaced does not come back from a conflict that another side kept it in.
    @Test func aReplacedValueDoesNotComeBackFromAConflict() throws {
        try begin()
        let third = TestDevice()
        try third.receive(mine.file)
        try third.use { try $0.store("fake old", for: "both") }
        _ = try other.merge(third.file)
        try other.use { try $0.store("fake newer", for: "kept") }
        try other.use { try $0.delete("both") }
        try mine.use { try $0.store("fake mine", for: "both") }
        #expect(try third.merge(mine.file).conflicts.count == 1)
        _ = try mine.merge(other.file)
        #expect(try mine.use { try $0.value(of: "both") } == "fake mine")
        let settled = try third.merge(mine.file)
        #expect(settled.conflicts.isEmpty, "\(settled)")
        for device in [third, mine] {
            let values = try device.use { try $0.values() }
            #expect(
                values["both"] == "fake mine" && values.keys.allSatisfy { !$0.contains("conflict") },
                "\(values)")
            if device.file != mine.file { _ = try mine.merge(third.file) }
        }
    }

    /// A conflict is settled by storing the kept value and deleting its copy, while this side changes the item as well.
    @Test func aSettledValueIsNotLostWithItsCopy() throws {
        try begin()
        try other.use { try $0.store("fake theirs", for: "both") }
        try mine.use { try $0.store("fake ours", for: "both") }
        let copy = try #require(try mine.merge(other.file).conflicts.first).keptAs
        _ = try other.merge(mine.file)
        try other.use { vault in
            try vault.store("fake theirs", for: "both")
            try vault.delete(copy.name)
        }
        try mine.use { try $0.store("fake newest", for: "both") }
        _ = try mine.merge(other.file)
        let values = try mine.use { try $0.values() }
        #expect(values["both"] == "fake newest" && values.values.contains("fake theirs"), "\(values)")
    }

    @Test func theKeyOfAConflictIsFoundWithoutTheEndsThatMergesMade() {
        for (key, original) in [
            ("k", "k"), ("k (conflict 7)", "k"), ("k (conflict 7, 2)", "k"), (" (conflict 7)", ""), ("", ""),
            ("k (conflict 7) (conflict 8, 3)", "k"), ("k (conflict 7", "k (conflict 7"),
            ("k (conflict )", "k (conflict )"), ("k (conflict 7,2)", "k (conflict 7,2)"),
            ("k (conflict 7, )", "k (conflict 7, )"), ("k(conflict 7)", "k(conflict 7)"),
            ("7)", "7)"), (", 7)", ", 7)"), ("k\n (conflict 7)", "k\n"),
            ("\u{65}\u{301} (conflict 7)", "\u{65}\u{301}"),
            ("k (conflict 7) ", "k (conflict 7) "),
        ] {
            #expect(SettledConflicts.original(of: TokenKey(key)).name == original, "\(key)")
        }
    }

    /// Two devices that merge each other's previous file keep a conflict once each.
    @Test func mergesAtTheSameTimeDoubleNothing() throws {
        try begin()
        try other.use { try $0.store("fake theirs", for: "both") }
        try mine.use { try $0.store("fake ours", for: "both") }
        for _ in 1...3 {
            let (ours, theirs) = (mine.file, other.file)
            _ = try mine.merge(theirs)
            _ = try other.merge(ours)
        }
        for device in [mine, other] {
            let values = try device.use { try $0.values() }
            #expect(
                values.count == 4 && Set(values.values).isSuperset(of: ["fake ours", "fake theirs"]),
                "\(values)")
        }
    }

    @Test func aRemovedDeviceStaysRemoved() throws {
        try begin()
        try other.use { _ = try $0.enrolDevice() }
        try mine.receive(other.file)
        try mine.use { vault in
            for device in try vault.devices() where !device.isThisDevice {
                _ = try vault.removeDevice(device.id)
            }
        }
        let enrolled = other.file
        try other.use { vault in
            try vault.storage(service: SimulatedVault.service).store(
                token: "fake", for: "private", policy: .whenUnlockedThisDeviceOnly)
        }
        let copy = mine.file
        let report = try mine.merge(other.file)
        #expect(report.notes.count == 1 && report.remaining == 1, "\(report)")
        #expect(try mine.use { try $0.devices().map(\.isThisDevice) } == [true])
        // A third device that has both files takes the removal over, and the device can enrol again.
        let third = TestDevice()
        try third.receive(enrolled)
        try third.use { try $0.store("fake", for: "third") }
        _ = try third.merge(copy)
        #expect(try third.use { try $0.devices().count } == 1)
        try other.receive(mine.file)
        _ = try other.adopt()
        try other.use { _ = try $0.enrolDevice() }
        #expect(try other.use { try $0.devices().count } == 2)
    }

    /// A copy with more commits than a history lists does not push out this file's own.
    @Test func aLongHistoryLeavesRoomForTheOther() {
        func commits(_ range: Range<UInt64>, _ seed: UInt64) -> Ancestry {
            var ancestry = Ancestry()
            for number in range {
                ancestry.append(
                    Ancestry.Commit(
                        sequence: number, head: Digest(of: [UInt8(seed)] + Array("\(number)".utf8))))
            }
            return ancestry
        }
        var history = commits(1..<101, 1)
        let own = history.commits
        let other = commits(1..<9_001, 2)
        history.merge(other)
        #expect(history.commits.count == Ancestry.bound && history.isCut)
        #expect(own.allSatisfy(history.contains) && history.commits.last == other.commits.last)
        var long = other
        long.merge(commits(1..<9_001, 3))
        #expect(
            long.commits.count == Ancestry.bound
                && long.commits.filter(other.contains).count == Ancestry.bound / 2)
    }

    /// After a conflict, the files have the same two values under exchanged keys. A new value of one of the keys
    /// replaces what its own file has there, and nothing else.
    @Test(
        arguments: [(true, true), (true, false), (false, true), (false, false)],
        ["both", "both (conflict 6)", "both" + String(repeating: "ü", count: 510)])
    func aValueThatBothFilesHaveStays(_ variant: (isDeleted: Bool, isInPlace: Bool), key: String) throws {
        try begin()
        try mine.use { try $0.store("fake mine", for: key) }
        try other.use { try $0.store("fake other", for: key) }
        let (old, copy) = (mine.file, other.file)
        _ = try mine.merge(copy)
        _ = try other.merge(old)
        _ = try other.merge(mine.file)
        try mine.use { vault in
            if variant.isDeleted { try vault.delete(key) } else { try vault.store("fake newer", for: key) }
        }
        func merge(isInPlace: Bool) throws -> Set<String> {
            let (device, copy) = isInPlace ? (other, mine.file) : (mine, other.file)
            let announced = try device.merge(copy, isRehearsal: true)
            let report = try device.merge(copy)
            #expect(announced.conflicts.count == report.conflicts.count)
            return try device.use { Set(try $0.listedValues("both")) }
        }
        for isInPlace in [variant.isInPlace, !variant.isInPlace] {
            let values = try merge(isInPlace: isInPlace)
            #expect(
                values.contains("fake other") && values.contains("fake newer") != variant.isDeleted,
                "\(values)")
        }
        #expect(mine.file == other.file)
    }

    /// Devices that merge each other's files at the same time keep a conflict once, however long its key is.
    @Test(arguments: [10, TokenKey.maximumLength - 4, TokenKey.maximumLength])
    func aConflictDoesNotGrow(length: Int) throws {
        let key = String(repeating: "k", count: length)
        try begin()
        try mine.use { try $0.store("fake mine", for: key) }
        try other.use { try $0.store("fake other", for: key) }
        for _ in 1...4 {
            let (ours, theirs) = (mine.file, other.file)
            _ = try mine.merge(theirs)
            _ = try other.merge(ours)
        }
        for device in [mine, other] {
            let values = try device.use { try $0.listedValues("kkk") }
            #expect(values.count <= 3 && Set(values) == ["fake mine", "fake other"], "\(values)")
        }
    }

    /// One history is so long that older commits were left out of it. Nothing then tells whether that file had an
    /// item and deleted it.
    @Test(.tags(.endurance), .from(.all), arguments: [true, false]) func whatACutHistoryCannotTellIsKept(
        isInPlace: Bool
    ) throws {
        try begin()
        try other.use { try $0.store("fake precious", for: "precious") }
        func storeMany(_ count: Int) throws {
            try mine.use { vault in for _ in 0..<count { try vault.store("fake", for: "counter") } }
        }
        try storeMany(Ancestry.bound / 2)
        _ = try other.merge(mine.file)
        try storeMany(Ancestry.bound / 2 + 500)
        try mine.use { _ = try $0.compact() }
        let report = isInPlace ? try other.merge(mine.file) : try mine.merge(other.file)
        #expect(report.deleted == 0 && report.conflicts.isEmpty, "\(report)")
        let device = isInPlace ? other : mine
        #expect(try device.use { try $0.value(of: "precious") } == "fake precious")
        #expect(try device.use { try $0.value(of: "both") } == "fake both")
    }

    @Test func whatCannotBeMergedIsRefused() throws {
        try begin()
        let stranger = TestDevice()
        try stranger.create()
        #expect(failure { _ = try mine.merge(stranger.file) }?.code == .unexpectedVault)
        // Both files lack a commit that this device has seen.
        let (old, copy) = (mine.file, other.file)
        try mine.use { try $0.store("fake", for: "seen") }
        try mine.receive(old)
        try other.use { try $0.store("fake", for: "beside") }
        _ = copy
        let refused = failure { _ = try mine.merge(other.file) }
        #expect(refused?.code == .forked && refused?.advice?.contains("vaultctl adopt") == true)
        #expect(mine.file == old)
    }

    @Test func aDamagedCopyChangesNothing() throws {
        try begin()
        try part()
        let before = mine.file
        var copy = other.file
        copy[17_800] ^= 1
        #expect(failure { _ = try mine.merge(copy) }?.code == .corrupt)
        #expect(mine.file == before)
    }
}
