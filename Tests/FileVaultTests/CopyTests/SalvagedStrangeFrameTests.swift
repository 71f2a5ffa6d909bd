import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// Salvaging a file that got frames of an earlier file of the vault, or of one beside it. To put them there takes no key.
@Suite struct SalvagedStrangeFrameTests {
    private let mine = TestDevice()
    private let other = TestDevice()

    enum Place: CaseIterable {
        case behindTheLog, between, over
    }

    /// Salvages `bytes` on the device that knows the vault. Also returns the values in the new file.
    private func salvage(_ bytes: [UInt8]) throws -> (report: SalvageReport, values: [String: String]) {
        try mine.receive(bytes)
        let copy = try mine.copy()
        defer { copy.close() }
        let report = try copy.salvage(to: mine.place("out"))
        defer { try? mine.disk.directory(0).remove("out") }
        let stranger = TestDevice()
        try stranger.receive(try mine.bytes(of: "out"))
        return (report, try stranger.use { try $0.values() })
    }

    /// Returns the file with `frame` at `index` of the frames of the file.
    private func planted(
        _ frame: ArraySlice<UInt8>, in file: [UInt8], at index: Int, _ place: Place
    ) -> [UInt8] {
        var bytes = file
        let frames = frames(of: file)
        switch place {
        case .behindTheLog:
            let end = frames[frames.count - 1].upperBound
            bytes.replaceSubrange(end..<end + 16, with: [UInt8](repeating: 0xaa, count: 16))
            bytes.replaceSubrange(end + 16..<end + 16 + frame.count, with: frame)
        case .between:
            bytes.insert(contentsOf: frame, at: frames[index].lowerBound)
        case .over:
            let start = frames[index].lowerBound
            bytes.replaceSubrange(start..<start + frame.count, with: frame)
        }
        return bytes
    }

    /// The new file has no value that was replaced or deleted without a count of it.
    @Test(arguments: Place.allCases) func aFrameOfAnEarlierFileIsCounted(place: Place) throws {
        try mine.create()
        try mine.use { vault in
            for (key, value) in [("k1", "one"), ("token", "fake old"), ("gone", "fake"), ("k2", "two")] {
                try vault.store(value, for: key)
            }
            _ = try vault.compact()
        }
        let earlier = mine.file
        try mine.use { vault in
            try vault.store("fake new", for: "token")
            try vault.delete("gone")
            try vault.store("three", for: "k3")
            _ = try vault.compact()
        }
        let (file, truth) = (mine.file, try mine.use { try $0.values() })
        var back = 0
        // Skips the first frame and the frame with the ancestry.
        for frame in frames(of: earlier).dropFirst(2) {
            for index in 2..<frames(of: file).count {
                let (report, values) = try salvage(planted(earlier[frame], in: file, at: index, place))
                let older = values.count { truth[$0.key] != $0.value }
                #expect(report.mayBeOlder >= older && !report.isComplete || older == 0, "\(report) \(values)")
                if place == .between { #expect(truth.allSatisfy { values[$0.key] != nil }, "\(values)") }
                back += older
            }
        }
        #expect(back > 0)
    }

    /// A deletion in a file beside this one says nothing of this one.
    @Test(arguments: [0, 16]) func aDeletionOfAnotherFileIsCounted(distance: Int) throws {
        try mine.create()
        try mine.use { vault in
            for key in ["k0", "k1", "k2"] { try vault.store("fake", for: key) }
        }
        try other.receive(mine.file)
        try other.use { vault in
            // The values are large, so deleting appends to the log rather than compacting it.
            for key in ["large", "larger"] {
                try vault.store(String(repeating: "f", count: 900_000), for: key)
            }
            try vault.delete("k1")
        }
        try mine.use { vault in
            try vault.store("fake new", for: "k1")
            try vault.store("fake", for: "k4")
        }
        var bytes = mine.file
        let end = frames(of: bytes).last?.upperBound ?? 0
        // The deletion, and a checkpoint that may follow it.
        let last = frames(of: other.file).suffix(2)
        let deletion = other.file[(last.first?.lowerBound ?? 0)..<(last.last?.upperBound ?? 0)]
        bytes.replaceSubrange(end..<end + distance, with: [UInt8](repeating: 0xaa, count: distance))
        bytes.replaceSubrange(end + distance..<end + distance + deletion.count, with: deletion)
        let (report, values) = try salvage(bytes)
        #expect(
            !report.isComplete && (values["k1"] == "fake new" || report.itemsLost == 1), "\(report) \(values)"
        )
    }

    /// A frame that is linked to the last commit that this device has seen is this file's, behind whatever loss.
    @Test func whatIsLinkedToWhatWasSeenIsNotInDoubt() throws {
        try mine.create()
        try mine.use { vault in
            for key in ["a", "b", "c", "d"] { try vault.store("fake \(key)", for: key) }
            try vault.store("fake newer", for: "a")
        }
        var bytes = mine.file
        bytes[frames(of: bytes)[3].lowerBound + 50] ^= 1
        #expect(try salvage(bytes).report.mayBeOlder == 0)
        // Without the anchor, each frame may come from another file.
        mine.forgetAnchor()
        #expect(try salvage(bytes).report.mayBeOlder == 3)
    }

    /// Keys from before a key rotation, put back with the newer file: what was stored since does not open with them.
    @Test func keysThatWereReplacedAreNamed() throws {
        try mine.create()
        var slot = 0
        try mine.use { vault in
            slot = try vault.addSlot(SuccessionTests.leaked, scope: .all).id
            try vault.store("fake old", for: "old")
        }
        let before = mine.file
        try mine.use { vault in
            _ = try vault.rotateKeys(keeping: [TestDevice.key], removing: [slot])
            try vault.store("fake new", for: "new")
        }
        let forged = try SuccessionTests.forge(from: before, over: mine.file)
        let (report, values) = try salvage(forged)
        #expect(
            report.isOlderThanSeen && report.notes.contains { $0.contains("removed unlock method") },
            "\(report)")
        // Both values are sealed under the newer keys.
        #expect(report.items == 0 && report.itemsLost == 2 && !report.losses.isEmpty, "\(report)")
        #expect(values.isEmpty)
    }
}
