import FoundationEssentials
import Synchronization
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// What a merge decides beside the items: how many replaced values are kept, dates, the keys of conflicts.
@Suite struct MergedSettingsTests {
    private let mine = TestDevice()
    private let other = TestDevice()

    private func create() throws {
        try mine.create()
        try other.receive(mine.file)
        try other.use { _ = try $0.values() }
    }

    private func keptValues(_ device: TestDevice) throws -> Int {
        try device.use { try $0.status().keptValues }
    }

    /// One device keeps replaced values from now on, and the other one stores meanwhile: the files become one.
    @Test(arguments: [false, true]) func theNumberOfKeptValuesComesAlong(isReversed: Bool) throws {
        try create()
        try mine.use { try $0.keepReplacedValues(5) }
        try other.use { vault in
            try vault.store("fake", for: "other")
            try vault.keepReplacedValues(isReversed ? 7 : 0)
        }
        let report = try mine.merge(other.file)
        #expect(report.notes.contains { $0.contains("replaced values") } == isReversed, "\(report.notes)")
        try other.merge(mine.file)
        #expect(mine.file == other.file)
        for device in [mine, other] { #expect(try keptValues(device) == (isReversed ? 7 : 5)) }
        #expect(try mine.merge(other.file).isUpToDate)
    }

    /// A file that has all of the vault's has decided later.
    @Test func aLaterNumberOfKeptValuesCounts() throws {
        try create()
        try mine.use { try $0.keepReplacedValues(5) }
        try other.receive(mine.file)
        try other.use { try $0.keepReplacedValues(2) }
        try mine.merge(other.file)
        #expect(try keptValues(mine) == 2)
        try other.merge(mine.file)
        #expect(try mine.file == other.file && keptValues(other) == 2)
    }

    /// The copy can take the vault's place as it is. A program that takes no lock writes to it once it was checked.
    @Test func aCopyThatChangesAfterItWasCheckedIsNotTaken() throws {
        try mine.create()
        try mine.use { try $0.store("fake first", for: "first") }
        try other.receive(mine.file)
        try other.use { vault in
            try vault.store("fake", for: "other")
            _ = try vault.compact()
        }
        let before = mine.file
        // The end of a secret that both files have, and that the merge does not read again. The other item
        // and a checkpoint follow it.
        let frames = TamperedVault(contents: other.disk.contents, facts: [:]).frames
        let first = try #require(frames.dropLast(2).last)
        let place = first.upperBound - Frame.trailerLength - 8
        var checked = 0
        let error = failure {
            try mine.merge(other.file) { done, total in
                guard done == total else { return }
                checked += 1
                // The merge checks this file first, then the copy.
                guard checked == 2 else { return }
                let copy = try? mine.disk.directory(0).open("copy", .readWrite)
                try? copy?.write([1, 2, 3, 4, 5, 6, 7, 8], at: place)
            }
        }
        #expect(checked >= 2 && error?.code == .corrupt, "\(String(describing: error))")
        #expect(mine.file == before)
        #expect(try mine.merge(other.file).taken == 1)
        #expect(mine.file == other.file)
    }

    /// The date of a slot tells a slot that was replaced from one that stayed.
    @Test func datesStayTheSameInARotation() throws {
        for milliseconds in 0..<40 {
            var device = TestDevice()
            // In 2038, the thousandth part of a date in seconds is less exact.
            device.secondsAhead =
                Double(1 << 31) + Double(milliseconds) / 1_000 - SimulatedVault.date.timeIntervalSince1970
            try device.create()
            try device.use { vault in
                let before = vault.state.withLock { $0.keybag.slots.map(\.created) }
                _ = try vault.rotateKeys(keeping: [TestDevice.key])
                #expect(vault.state.withLock { $0.keybag.slots.map(\.created) } == before)
            }
        }
    }

    /// Every value of many conflicts stays, each under a key of its own.
    @Test func manyConflictsOfOneNameGetKeysOfTheirOwn() throws {
        try create()
        let keys = (1...60).map { "both (conflict \($0))" }
        for (device, name) in [(mine, "mine"), (other, "other")] {
            try device.use { vault in for key in keys { try vault.store("fake \(name) \(key)", for: key) } }
        }
        let report = try mine.merge(other.file)
        #expect(report.conflicts.count == 60 && Set(report.conflicts.map(\.keptAs)).count == 60)
        let values = try mine.use { Set(try $0.listedValues("both")) }
        #expect(values == Set(["mine", "other"].flatMap { name in keys.map { "fake \(name) \($0)" } }))
    }
}
