import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// Files that end inside what was written with them, as a transfer that was cut off leaves them: each commit in them is whole.
@Suite struct CutFileTests {
    private let mine = TestDevice()
    private let other = TestDevice()

    /// Returns the compacted file of `mine` with zeros from its frame `index` on. Both devices have the same items.
    private func cut(from index: Int) throws -> [UInt8] {
        try mine.create()
        try mine.use { vault in
            for key in ["a", "b", "c"] { try vault.store("fake \(key)", for: key) }
        }
        try other.receive(mine.file)
        try other.use { vault in
            try vault.store("fake d", for: "d")
            _ = try vault.compact()
        }
        var bytes = other.file
        for place in frames(of: bytes)[index].lowerBound..<bytes.count { bytes[place] = 0 }
        return bytes
    }

    private let all = ["a": "fake a", "b": "fake b", "c": "fake c"]

    /// Genesis and ancestry come first, then the items, then a checkpoint.
    @Test(arguments: 1...6) func aDeviceThatKnowsNothingOpensNoCutFile(index: Int) throws {
        let bytes = try cut(from: index)
        let fresh = TestDevice()
        try fresh.receive(bytes)
        #expect(failure { try fresh.use { _ in } }?.code == .corrupt)
        mine.forgetAnchor()
        try mine.receive(bytes)
        #expect(failure { try mine.use { _ in } }?.code == .corrupt)
        let copy = try fresh.copy()
        defer { copy.close() }
        #expect(try !copy.verify().isClean)
        #expect(failure { _ = try copy.adopt() }?.code == .corrupt)
    }

    @Test(arguments: 1...6) func aMergeOfACutFileDeletesNothing(index: Int) throws {
        let bytes = try cut(from: index)
        #expect(failure { try mine.merge(bytes) }?.code == .corrupt)
        #expect(try mine.use { try $0.values() } == all)
    }

    /// The cut file lists all of the other one's commits, and lacks its items.
    @Test(arguments: 1...6) func aMergeIntoACutFileTakesNothingForKnown(index: Int) throws {
        let (bytes, whole) = (try cut(from: index), mine.file)
        try mine.receive(bytes)
        #expect(failure { try mine.merge(whole) }?.code == .corrupt)
        #expect(mine.file == bytes)
        try mine.receive(whole)
        #expect(try mine.use { try $0.values() } == all)
    }

    @Test(arguments: 1...6) func whatASalvageOfACutFileLacksIsReported(index: Int) throws {
        let bytes = try cut(from: index)
        let fresh = TestDevice()
        try fresh.receive(bytes)
        let copy = try fresh.copy()
        defer { copy.close() }
        let report = try copy.salvage(to: fresh.place("out"))
        #expect(!report.isComplete && report.losses.count == 1, "\(report)")
        // The new file lists none of the commits, so a device that has seen the commits does not take the
        // file as newer.
        try mine.receive(try fresh.bytes(of: "out"))
        #expect(failure { try mine.use { _ in } }?.code == .forked)
    }
}
