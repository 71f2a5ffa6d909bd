import Synchronization
import Testing
import TokenVault
import TokenVaultCrypto
import TokenVaultPlatform

@testable import TokenVaultFile

/// Files put together from two files of one vault, without any key: parts of both are authentic, at the same numbers.
@Suite struct SplicedFileTests {
    private let mine = TestDevice()
    private let other = TestDevice()
    private let theirs = UnlockMethod.keyFile(Secret(utf8: "a fake key file of the other one"))

    private typealias Part = (offset: Int, length: Int)

    /// Returns the places of the frames in a vault's file.
    private func frames(of bytes: [UInt8]) -> [Part] {
        var frames: [Part] = []
        var offset = VaultFormat.logStart
        while let length = Frame.length(ofPrefix: bytes, at: offset) {
            frames.append((offset, length))
            offset += length
        }
        return frames
    }

    /// Returns `bytes` with the sealed contents of a frame of `source` in those of a frame as long.
    private func splice(_ source: [UInt8], _ from: Part, into bytes: [UInt8], _ to: Part) throws -> [UInt8] {
        try #require(from.length == to.length)
        var bytes = bytes
        let content = Frame.contentOffset..<to.length - Frame.trailerLength
        bytes.replaceSubrange(
            to.offset + content.lowerBound..<to.offset + content.upperBound,
            with: source[from.offset + content.lowerBound..<from.offset + content.upperBound])
        return bytes
    }

    /// Makes a vault that two devices have, with a leaked unlock method.
    private func create() throws {
        try mine.create()
        try mine.use { vault in
            try vault.store("fake old", for: "old")
            _ = try vault.addSlot(SuccessionTests.leaked, scope: .all)
        }
        try other.receive(mine.file)
        try other.use { _ in }
    }

    /// Opens the vault of `mine` with `method` alone.
    private func unlock(_ method: UnlockMethod) throws {
        let vault = try BlockingFileVault.open(
            at: SimulatedVault.location(on: mine.disk),
            configuration: SimulatedVault.configuration(tailBound: 6))
        defer { vault.close() }
        try vault.unlock(with: method)
    }

    /// The other device changed the keybag more often since. Its keybag is under the same root, and is not the one in use.
    @Test(arguments: [0, 1]) func aKeybagOfAnotherFileIsNotTaken(copy: Int) throws {
        try create()
        try mine.use { vault in
            try vault.removeSlot(2)
            try vault.store("fake new", for: "new")
        }
        try other.use { vault in
            _ = try vault.addSlot(SimulatedVault.key("third"), scope: .all)
            _ = try vault.addSlot(theirs, scope: .all)
        }
        let honest = mine.file
        let length = VaultFormat.keybagLength
        var spliced = honest
        spliced.replaceSubrange(copy * length..<(copy + 1) * length, with: other.file.prefix(length))
        try mine.receive(spliced)
        #expect(
            failure { try unlock(SuccessionTests.leaked) }?.code == .wrongPassphrase
        )
        #expect(failure { try unlock(theirs) }?.code == .wrongPassphrase)
        #expect(try mine.use { try $0.slots().map(\.id) } == [1])
        #expect(try mine.use { try $0.values() } == ["old": "fake old", "new": "fake new"])
        #expect(mine.file.prefix(2 * length) == honest.prefix(2 * length))
    }

    /// To check a file changes nothing in it, and names no keybag.
    @Test func aCheckOfTheFileTakesNoKeybagOfAnother() throws {
        try create()
        try other.use { _ = try $0.addSlot(SimulatedVault.key("third"), scope: .all) }
        let length = VaultFormat.keybagLength
        let spliced = other.file.prefix(length) + mine.file.dropFirst(length)
        try mine.receive(Array(spliced))
        let copy = try mine.copy()
        defer { copy.close() }
        #expect(try copy.verify().problems.map(\.offset) == [0])
        #expect(mine.file == Array(spliced))
    }

    /// Both changed the keybag in the commit of the same number.
    @Test func aRecordOfAnotherFileNamesNoKeybag() throws {
        try create()
        try mine.use { try $0.removeSlot(2) }
        try other.use { _ = try $0.addSlot(SimulatedVault.key("third"), scope: .all) }
        let (honest, theirs) = (mine.file, other.file)
        let spliced = try splice(
            theirs, try #require(frames(of: theirs).last), into: honest, try #require(frames(of: honest).last)
        )
        let front = VaultFormat.pointerStart
        try mine.receive(Array(theirs.prefix(front) + spliced.dropFirst(front)))
        #expect(failure { try mine.use { _ in } }?.code == .corrupt)
        #expect(failure { try unlock(SuccessionTests.leaked) }?.code == .corrupt)
        try mine.receive(honest)
        #expect(try mine.use { try $0.slots().map(\.id) } == [1])
    }

    /// Both stored an item and compacted. A third device has read the one file, and gets the other one with the history of
    /// the first.
    @Test func aHistoryOfAnotherFileIsNotTaken() throws {
        try create()
        let third = TestDevice()
        for (device, key) in [(mine, "mine"), (other, "other")] {
            try device.use { vault in
                try vault.store("fake", for: key)
                _ = try vault.compact()
            }
        }
        try third.receive(other.file)
        try third.use { _ in }
        let (ours, theirs) = (frames(of: mine.file), frames(of: other.file))
        let spliced = try splice(other.file, theirs[1], into: mine.file, ours[1])
        try third.receive(spliced)
        #expect(failure { try third.use { _ in } }?.code == .corrupt)
        try third.receive(mine.file)
        #expect(failure { try third.use { _ in } }?.code == .forked)
    }

    /// The history is overwritten while a program has the file open. A compaction must not copy it.
    @Test func aHistoryThatChangedIsNotCopied() throws {
        try create()
        for (device, key) in [(mine, "mine"), (other, "other")] {
            try device.use { vault in
                try vault.store("fake", for: key)
                _ = try vault.compact()
            }
        }
        let vault = try mine.opened()
        defer { vault.close() }
        let honest = mine.file
        let theirs = frames(of: other.file)
        let front = VaultFormat.logStart..<theirs[2].offset
        let file = try mine.disk.directory(0).open(SimulatedVault.name, .readWrite)
        try file.write(Array(other.file[front]), at: front.lowerBound)
        #expect(failure { _ = try vault.compact() }?.code == .corrupt)
        try file.write(Array(honest[front]), at: front.lowerBound)
        #expect(try vault.value(of: "mine") == "fake")
        _ = try vault.compact()
        #expect(try vault.value(of: "mine") == "fake")
    }

    /// Both stored an item under one key, in the commit of the same number.
    @Test(arguments: [false, true]) func aValueOfAnotherFileIsNotTaken(isOpen: Bool) throws {
        try create()
        try mine.use { try $0.store("fake mine", for: "token") }
        try other.use { try $0.store("fake else", for: "token") }
        let (ours, theirs) = (frames(of: mine.file), frames(of: other.file))
        let place = try #require(ours.last)
        // Another group comes last, so opening the vault does not check the contents of this frame.
        try mine.use { try $0.store("fake late", for: "late") }
        let honest = mine.file
        let spliced = try splice(other.file, try #require(theirs.last), into: honest, place)
        func expectDamage(_ vault: BlockingFileVault) {
            #expect(failure { _ = try vault.value(of: "token") }?.code == .corrupt)
            #expect(failure { _ = try vault.metadata(of: "token") }?.code == .corrupt)
            #expect(failure { _ = try vault.listedKeys() }?.code == .corrupt)
            #expect(failure { _ = try vault.compact() }?.code == .corrupt)
        }
        if isOpen {
            let vault = try mine.opened()
            defer { vault.close() }
            try mine.disk.directory(0).open(SimulatedVault.name, .readWrite).write(spliced, at: 0)
            expectDamage(vault)
            #expect(try vault.value(of: "late") == "fake late")
        } else {
            try mine.receive(spliced)
            try mine.use { expectDamage($0) }
        }
    }

    /// The whole frame of another value is put in the place between the walk along the log and the copying of the values.
    @Test func aCompactionCopiesNoValueOfAnotherFile() throws {
        try create()
        // A compaction reads in parts, and the first part ends before the frame.
        let filling = String(repeating: "f", count: 300 << 10)
        for (device, value) in [(mine, "fake mine"), (other, "fake else")] {
            try device.use { vault in
                try vault.store(filling, for: "filling")
                try vault.store(value, for: "token")
            }
        }
        let (place, their) = (
            try #require(frames(of: mine.file).last), try #require(frames(of: other.file).last)
        )
        try #require(place.length == their.length)
        let frame = other.file[their.offset..<their.offset + their.length]
        let honest = mine.file
        let vault = try mine.opened()
        defer { vault.close() }
        let file = try mine.disk.directory(0).open(SimulatedVault.name, .readWrite)
        let isDone = Mutex(false)
        let error = failure {
            _ = try vault.compact { done, _ in
                guard done == 0 else { return }
                try? file.write(Array(frame), at: place.offset)
                isDone.withLock { $0 = true }
            }
        }
        #expect(isDone.withLock { $0 })
        #expect(error?.code == .corrupt)
        try file.write(Array(honest[place.offset..<place.offset + place.length]), at: place.offset)
        #expect(try vault.value(of: "token") == "fake mine")
        _ = try vault.compact()
        #expect(try vault.value(of: "token") == "fake mine")
    }

    /// The frames in front of an index are not walked along.
    @Test func aFrameOfAnotherFileIsNotTakenInFrontOfAnIndex() throws {
        try create()
        try mine.use { try $0.store("fake mine", for: "token") }
        try other.use { try $0.store("fake else", for: "token") }
        let (place, their) = (
            try #require(frames(of: mine.file).last), try #require(frames(of: other.file).last)
        )
        try #require(place.length == their.length)
        try mine.use { vault in for number in 0..<20 { try vault.store("fake", for: "k\(number)") } }
        var spliced = mine.file
        spliced.replaceSubrange(
            place.offset..<place.offset + place.length,
            with: other.file[their.offset..<their.offset + their.length])
        try mine.receive(spliced)
        try mine.use { vault in
            #expect(try vault.session().log.state.withLock { $0.index.block != nil })
            #expect(failure { _ = try vault.value(of: "token") }?.code == .corrupt)
            #expect(failure { _ = try vault.metadata(of: "token") }?.code == .corrupt)
            #expect(failure { _ = try vault.compact() }?.code == .corrupt)
            let value = try vault.value(of: "k1")
            #expect(value == "fake")
        }
    }
}
