import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// Several devices and programs whose keys are rotated, restored and merged. What has all that a device has seen is
/// not refused for its keys.
@Suite struct SharedSuccessionTests {
    private let mine = TestDevice()
    private let other = TestDevice()
    private let third = TestDevice()

    /// All devices have the vault.
    private func create() throws {
        try mine.create()
        try mine.use { try $0.store("fake first", for: "first") }
        for device in [other, third] {
            try device.receive(mine.file)
            try device.use { _ in }
        }
    }

    private func rotate(_ device: TestDevice, _ times: Int = 1, storing key: String) throws {
        for _ in 1...times {
            try device.use { vault in
                _ = try vault.rotateKeys(keeping: [TestDevice.key])
                try vault.store("fake \(key)", for: key)
            }
        }
    }

    /// Makes a vault with a leaked unlock method, and revokes that. Returns the files from before and after.
    private func revoke() throws -> (before: [UInt8], newer: [UInt8]) {
        try mine.create()
        let slot = try mine.use { try $0.addSlot(SuccessionTests.leaked, scope: .all).id }
        let before = mine.file
        try mine.use { vault in
            _ = try vault.rotateKeys(keeping: [TestDevice.key], removing: [slot])
            try vault.store("fake new", for: "new")
        }
        return (before, mine.file)
    }

    @Test func allThreeRotateAndMerge() throws {
        try create()
        for (device, key) in [(mine, "mine"), (other, "other"), (third, "third")] {
            try rotate(device, storing: key)
        }
        _ = try mine.merge(other.file)
        _ = try other.merge(third.file)
        _ = try mine.merge(other.file)
        for device in [other, third] {
            try device.receive(mine.file)
            #expect(try device.use { try $0.values() }.count == 4)
        }
    }

    /// Two devices with the same keys, of which one has merged a copy with others.
    @Test func aMergeUnderTheSameKeysTakesTheListOver() throws {
        try create()
        try rotate(other, storing: "other")
        try third.receive(other.file)
        try third.use { try $0.store("fake third", for: "third") }
        try rotate(mine, storing: "mine")
        _ = try other.merge(mine.file)
        _ = try third.merge(other.file)
        try mine.receive(third.file)
        #expect(try mine.use { try $0.values() }.count == 4)
        // With all roots known, there is nothing left to merge.
        _ = try other.merge(third.file)
        #expect(other.file == third.file)
        let again = try third.merge(other.file)
        #expect(again.isUpToDate)
    }

    /// Within eight rotations of both sides together.
    @Test(arguments: [(5, 1), (6, 1), (5, 2), (1, 6)]) func roomIsUsedForBothSides(
        _ theirs: Int, _ ours: Int
    ) throws {
        try create()
        try rotate(other, storing: "other")
        try third.receive(other.file)
        try third.use { _ in }
        if theirs > 1 { try rotate(other, theirs - 1, storing: "more") }
        try rotate(mine, ours, storing: "mine")
        _ = try mine.merge(other.file)
        try third.receive(mine.file)
        #expect(try third.use { try $0.value(of: "mine") } == "fake mine")
    }

    /// A program had the vault open when an older copy was restored. It looks at the file again and again.
    @Test(arguments: [false, true]) func anOpenSessionDoesNotTakeARestoreBack(isOfOtherDevice: Bool) throws {
        try create()
        let before = mine.file
        try rotate(mine, storing: "mine")
        let old = try mine.opened()
        defer { old.close() }
        try mine.receive(before)
        try mine.adopt()
        // A write checks the file at the path.
        func look() {
            for _ in 1...2 {
                _ = failure { _ = try old.listedKeys() }
                _ = failure { try old.store("fake", for: "late") }
            }
        }
        look()
        if isOfOtherDevice {
            try other.receive(mine.file)
            try other.adopt()
            try other.use { try $0.store("fake other", for: "other") }
            try other.receive(other.file)
            try mine.receive(other.file)
            try mine.adopt()
        } else {
            // Another file with the same bytes.
            try mine.receive(mine.file)
        }
        look()
        #expect(failure { try mine.use { try $0.store("fake after", for: "after") } } == nil)
        try mine.receive(mine.file)
        look()
        #expect(try mine.use { try $0.value(of: "after") } == "fake after")
    }

    /// A program has the vault open while a forged file lies at the path. Nothing of that file counts as seen.
    @Test func anOpenSessionDoesNotTakeAForgedFileForSeen() throws {
        let (before, newer) = try revoke()
        let open = try mine.opened()
        defer { open.close() }
        try mine.receive(try SuccessionTests.forge(from: before, over: newer))
        // A write checks the file at the path.
        for _ in 1...3 { #expect(failure { try open.store("fake", for: "late") }?.code == .locked) }
        try mine.receive(newer)
        #expect(try mine.use { try $0.value(of: "new") } == "fake new")
    }

    /// Only one copy of the keybag is overwritten, by one under former roots that looks newer. The other one counts.
    @Test func aPlantedCopyOfTheKeybagIsReplaced() throws {
        let (before, newer) = try revoke()
        let planted = try SuccessionTests.forge(from: before, over: newer, isNamed: false)
        for isAdopted in [false, true] {
            try mine.receive(planted)
            if isAdopted { try mine.adopt() }
            #expect(try mine.use { try $0.slots().map(\.id) } == [1])
            #expect(try mine.use { try $0.value(of: "new") } == "fake new")
            let front = Array(mine.file.prefix(VaultFormat.pointerStart))
            #expect(front.prefix(front.count / 2) == front.suffix(front.count / 2))
        }
    }

    /// To adopt a file under other keys may bring back an unlock method: the report says so.
    @Test func anAdoptionOfOtherKeysIsNoted() throws {
        let (before, newer) = try revoke()
        try mine.receive(try SuccessionTests.forge(from: before, over: newer))
        let copy = try mine.copy()
        defer { copy.close() }
        let report = try copy.adopt()
        #expect(report.notes.contains { $0.contains("slots are those of the copy") }, "\(report)")
    }

    /// A rotation that a crash cut short before the log named it has not happened.
    @Test func anInterruptedRotationHasNotHappened() throws {
        try create()
        let before = mine.file
        try other.use { vault in
            _ = try vault.replaceRoot(
                [(old: TestDevice.key, new: TestDevice.key)], removing: [], droppingOthers: false,
                isResealing: false)
        }
        let interrupted =
            other.file.prefix(VaultFormat.keybagLength) + before.dropFirst(VaultFormat.keybagLength)
        try mine.receive(Array(interrupted))
        let generation = try Keybag(decoding: Array(before.prefix(VaultFormat.keybagLength))).generation
        #expect(try mine.use { try $0.session().log.keybagRecord.generation } == generation)
        #expect(mine.file.prefix(VaultFormat.keybagLength) == before.prefix(VaultFormat.keybagLength))
    }

    /// Both sides replaced a passphrase, the copy later. The advice is to restore the copy, and to merge the file that it
    /// replaces. Nothing is lost.
    @Test func theCopyWithTheLaterPassphraseIsRestored() throws {
        let old = Secret(utf8: "fake old")
        var later = other
        later.secondsAhead = 60
        try mine.create()
        try mine.use { _ = try $0.addSlot(.passphrase(old), scope: .all) }
        try later.receive(mine.file)
        for (device, key) in [(mine, "mine"), (later, "later")] {
            try device.use { vault in
                _ = try vault.rotatePassphrase(
                    old, replacedBy: Secret(utf8: "fake \(key)"), keeping: [TestDevice.key])
                try vault.store("fake \(key)", for: key)
            }
        }
        let before = mine.file
        let refused = failure { try mine.merge(later.file) }
        #expect(
            refused?.reason == .ancestry(.slotReplacedInCopy)
                && refused?.advice?.contains("restore") == true, "\(refused as Any)")
        try mine.receive(later.file)
        try mine.adopt()
        #expect(try mine.merge(before).taken == 1)
        #expect(try mine.use { try $0.values() } == ["mine": "fake mine", "later": "fake later"])
    }

    /// A damaged vault is not told as a damaged copy.
    @Test func theDamageIsThatOfTheFileThatHasIt() throws {
        try create()
        let whole = mine.file
        var damaged = whole
        damaged[VaultFormat.logStart + 200] ^= 1
        try other.use { try $0.store("fake other", for: "other") }
        let inCopy = failure { try other.merge(damaged) }
        guard case .damagedCopy = inCopy?.reason else {
            Issue.record("\(inCopy as Any)")
            return
        }
        try mine.receive(damaged)
        let inVault = failure { try mine.merge(other.file) }
        #expect(inVault?.code == .corrupt && inVault?.reason != inCopy?.reason, "\(inVault as Any)")
        if case .damagedCopy = inVault?.reason { Issue.record("\(inVault as Any)") }
    }

    private func moved(_ move: Anchor.Move) -> AnchorSlot? {
        if case .moved(let slot) = move { slot } else { nil }
    }

    /// What a program knows of a keybag says nothing of another one.
    @Test func theAnchorNamesOnlyTheRootsOfTheKeybagInUse() throws {
        try create()
        try mine.use { vault in
            let log = try vault.session().log
            let (anchor, state) = (log.anchor, log.state.withLock { $0 })
            let known = try #require(try anchor.read()).roots
            let name = Bytes16(7, 7)
            let other = Succession(
                all: [name] + [known.all].compactMap { $0 },
                holder: [name] + [known.holder].compactMap { $0 })
            let record = KeybagRecord(
                generation: state.keybag.generation, digest: Digest(of: [7]))
            anchor.use(other, of: record)
            #expect(moved(anchor.advance(to: state, after: state.seen))?.roots == known)
            let expected = try anchor.expect(state, seen: try anchor.read())
            #expect(expected?.comingRoots == known)
            anchor.use(other, of: state.keybag)
            #expect(moved(anchor.advance(to: state, after: expected))?.roots == other.present)
        }
    }
}
