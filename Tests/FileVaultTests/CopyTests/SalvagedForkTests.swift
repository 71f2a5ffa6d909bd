import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// Salvaging what is, or has parts of, another file of the vault.
@Suite struct SalvagedForkTests {
    private let mine = TestDevice()
    private let other = TestDevice()
    private let leaked = SuccessionTests.leaked

    /// Both devices go on with the vault by themselves.
    private func fork() throws {
        try mine.create()
        try mine.use { vault in
            try vault.store("fake old", for: "old")
            _ = try vault.addSlot(leaked, scope: .all)
        }
        try other.receive(mine.file)
        try mine.use { vault in
            try vault.store("fake mine", for: "mine")
            try vault.removeSlot(2)
        }
        try other.use { vault in
            try vault.store("fake other", for: "other")
            _ = try vault.addSlot(SimulatedVault.key("third"), scope: .all)
            try vault.store("fake more", for: "more")
        }
    }

    private func salvage(_ bytes: [UInt8]) throws -> (report: SalvageReport, out: [UInt8]) {
        try mine.receive(bytes)
        let copy = try mine.copy()
        defer { copy.close() }
        let report = try copy.salvage(to: mine.place("out"))
        defer { try? mine.disk.directory(0).remove("out") }
        return (report, try mine.bytes(of: "out"))
    }

    private func end(of bytes: [UInt8]) -> Int { frames(of: bytes).last?.upperBound ?? VaultFormat.logStart }

    private func last(of bytes: [UInt8]) -> ArraySlice<UInt8> { bytes[frames(of: bytes).last ?? 0..<0] }

    /// A whole file beside the known one is salvaged as what it is.
    @Test func aSalvagedForkIsNoDescendant() throws {
        try fork()
        let honest = mine.file
        let (report, out) = try salvage(other.file)
        #expect(report.losses.isEmpty && report.isOlderThanSeen && report.notes.count == 1, "\(report)")
        try mine.receive(out)
        #expect(failure { try mine.use { _ in } }?.code == .forked)
        try mine.receive(honest)
        #expect(try mine.use { try $0.values() } == ["old": "fake old", "mine": "fake mine"])
        #expect(try mine.use { try $0.slots().map(\.id) } == [1])
    }

    /// The salvage of the honest file is complete, and this device accepts the new file.
    @Test func aFileThatHasWhatWasSeenIsComplete() throws {
        try fork()
        let honest = mine.file
        let (report, out) = try salvage(honest)
        #expect(report.isComplete && report.notes.isEmpty, "\(report)")
        try mine.receive(out)
        #expect(try mine.use { try $0.values() } == ["old": "fake old", "mine": "fake mine"])
    }

    /// 16 bytes behind the log look like a write that a crash cut short. What follows them is part of that.
    @Test(arguments: [false, true]) func aKeybagRecordBehindATornWriteNamesNoKeybag(bothCopies: Bool) throws {
        try fork()
        // The filling makes this log longer than the other one. The other log's record then does not say that
        // all of this log is durable.
        try mine.use { try $0.store(String(repeating: "f", count: 20_000), for: "filling") }
        let record = last(of: try keybagRecordOfOther())
        var bytes = mine.file
        let end = end(of: bytes)
        let behind = end + 1_024
        bytes.replaceSubrange(end..<end + 16, with: [UInt8](repeating: 7, count: 16))
        bytes.replaceSubrange(behind..<behind + record.count, with: record)
        let length = VaultFormat.keybagLength
        bytes.replaceSubrange(length..<2 * length, with: other.file.prefix(length))
        if bothCopies { bytes.replaceSubrange(0..<length, with: other.file.prefix(length)) }
        let (report, out) = try salvage(bytes)
        let ids = (try Keybag(decoding: Array(out.prefix(length)))).slots.map(\.identifier)
        if bothCopies {
            #expect(!report.isComplete, "\(report)")
        } else {
            #expect(ids == [1] && report.losses.isEmpty, "\(report)")
        }
    }

    /// Changes the other device's slots, and returns its file, which ends with the record of that.
    private func keybagRecordOfOther() throws -> [UInt8] {
        try other.use { _ = try $0.addSlot(SimulatedVault.key("fourth"), scope: .all) }
        return other.file
    }

    /// A keybag record behind a loss may be another file's. The report says so.
    @Test func slotsBehindALossAreReported() throws {
        try fork()
        let record = last(of: try keybagRecordOfOther())
        var bytes = mine.file
        let end = end(of: bytes)
        bytes.replaceSubrange(end..<end + record.count, with: record)
        let length = VaultFormat.keybagLength
        bytes.replaceSubrange(length..<2 * length, with: other.file.prefix(length))
        let (report, _) = try salvage(bytes)
        #expect(!report.isComplete)
        #expect(report.notes.contains { $0.contains("slot list") }, "\(report.notes)")
    }

    /// A frame that lists commits counts behind the first frame only, and a first frame only in front of all others.
    @Test(arguments: [0, 1]) func whatAnotherFileListsIsNotTaken(index: Int) throws {
        try fork()
        let third = TestDevice()
        try third.receive(other.file)
        try third.use { _ in }
        // The compacted file lists the commits that the third device has seen.
        try other.use { _ = try $0.compact() }
        let theirs = other.file
        var offset = VaultFormat.logStart
        for _ in 0..<index { offset += try #require(Frame.length(ofPrefix: theirs, at: offset)) }
        let frame = theirs[offset..<offset + (try #require(Frame.length(ofPrefix: theirs, at: offset)))]
        var bytes = mine.file
        let end = end(of: bytes)
        // With the other file's first frame, the newest commits of this device are cut off. Otherwise that
        // frame would hide their absence.
        let cut = index == 0 ? end - last(of: bytes).count : end
        for place in cut..<bytes.count { bytes[place] = 0 }
        bytes.replaceSubrange(cut..<cut + 16, with: [UInt8](repeating: 7, count: 16))
        bytes.replaceSubrange(cut + 1_024..<cut + 1_024 + frame.count, with: frame)
        let (report, out) = try salvage(bytes)
        #expect(report.isComplete == (index == 1), "\(report)")
        try third.receive(out)
        #expect(failure { try third.use { _ in } }?.code == .forked)
    }

    /// An earlier keybag stands in both places of the keybag in use. The new file lists no commit, not even the removal of the
    /// slot.
    @Test func anEarlierKeybagIsALoss() throws {
        try mine.create()
        try mine.use { vault in
            try vault.store("fake old", for: "old")
            _ = try vault.addSlot(leaked, scope: .all)
        }
        let earlier = mine.file.prefix(VaultFormat.keybagLength)
        try mine.use { try $0.removeSlot(2) }
        let honest = mine.file
        try other.receive(honest)
        try other.use { _ in }
        let (report, out) = try salvage(Array(earlier + earlier + honest.dropFirst(2 * earlier.count)))
        #expect(report.losses.count == 1 && report.isOlderThanSeen, "\(report)")
        for device in [mine, other] {
            try device.receive(out)
            #expect(failure { try device.use { _ in } }?.code == .forked)
        }
    }

    /// A file that was written with replaced values has some items twice. A lost value may be the newer one.
    @Test func aLostValueAmongKeptOnesIsCounted() throws {
        try mine.create()
        try mine.use { vault in
            try vault.keepReplacedValues(1)
            try vault.store("fake older", for: "token")
            try vault.store("fake newer", for: "token")
            try vault.store("fake other", for: "other")
            _ = try vault.compact()
        }
        var bytes = mine.file
        var offset = VaultFormat.logStart
        // Skips genesis, ancestry and the older value.
        for _ in 0..<3 { offset += try #require(Frame.length(ofPrefix: bytes, at: offset)) }
        bytes[offset + 50] ^= 1
        let (report, out) = try salvage(bytes)
        mine.forgetAnchor()
        try mine.receive(out)
        #expect(try mine.use { try $0.values() } == ["token": "fake older", "other": "fake other"])
        #expect(report.losses.count == 1 && report.mayBeOlder >= 1, "\(report)")
    }

    /// The first frame of another file hides nothing of what this device has seen.
    @Test func theEndIsMissedBehindTheFirstFrameOfAnotherFile() throws {
        try fork()
        try mine.use { _ = try $0.storage(service: SimulatedVault.service).delete(for: "old") }
        try mine.use { try $0.store("fake late", for: "late") }
        try other.use { _ = try $0.compact() }
        var bytes = mine.file
        let length = try #require(Frame.length(ofPrefix: bytes, at: VaultFormat.logStart))
        try #require(Frame.length(ofPrefix: other.file, at: VaultFormat.logStart) == length)
        let first = VaultFormat.logStart..<VaultFormat.logStart + length
        bytes.replaceSubrange(first, with: other.file[first])
        let end = end(of: bytes)
        for place in end - last(of: bytes).count..<end { bytes[place] = 0 }
        let (report, _) = try salvage(bytes)
        #expect(!report.isComplete && report.mayBeOlder == report.items, "\(report)")
    }
}
