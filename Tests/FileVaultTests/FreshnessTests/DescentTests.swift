import Synchronization
import Testing
import TokenVault

@testable import TokenVaultFile

/// A device opens a file only if the file descends from all that the device has stored or read.
@Suite struct DescentTests {
    private let a = TestDevice()
    private let b = TestDevice()

    init() throws {
        try a.create()
        try a.use { try $0.store("one", for: "first") }
        try b.receive(a.file)
    }

    private func code(_ device: TestDevice) -> TokenStorageError.Code? {
        failure { try device.use { _ in } }?.code
    }

    /// The file that another device wrote to meanwhile has a later epoch and a greater sequence, and lacks a store.
    @Test func aLaterEpochOfAnotherDeviceIsAFork() throws {
        try b.use { vault in
            for number in 1...3 { try vault.store("fake \(number)", for: "of b \(number)") }
            try vault.delete("first")
        }
        try a.use { try $0.store("kept", for: "important") }
        let own = a.file
        try a.receive(b.file)
        #expect(code(a) == .forked)
        try a.receive(own)
        #expect(try a.use { try $0.value(of: "important") } == "kept")
    }

    /// A fork with more changes of the keybag does not bring a removed unlock method back.
    @Test func aForkUndoesNoRemovedSlot() throws {
        let leaked = SimulatedVault.key("second")
        try a.use { _ = try $0.addSlot(leaked, scope: .all) }
        try b.receive(a.file)
        #expect(code(b) == nil)
        try b.use { vault in
            for _ in 1...3 {
                try vault.removeSlot(try vault.addSlot(SimulatedVault.key("third"), scope: .all).id)
            }
            _ = try vault.compact()
        }
        try a.use { vault in
            let slot = try #require(try vault.status().slots.last)
            try vault.removeSlot(slot.id)
        }
        try a.receive(b.file)
        let vault = try BlockingFileVault.open(
            at: SimulatedVault.location(on: a.disk), configuration: SimulatedVault.configuration())
        #expect(failure { try vault.unlock(with: leaked) }?.code == .forked)
    }

    /// Nor one that new keys shut out, however often the fork changed its own keybag and keys since.
    @Test func aForkUndoesNoRotation() throws {
        let leaked = SimulatedVault.key("second")
        try a.use { _ = try $0.addSlot(leaked, scope: .all) }
        try b.receive(a.file)
        try b.use { vault in
            for _ in 1...2 { _ = try vault.rotateKeys(keeping: [TestDevice.key, leaked]) }
            try vault.store("fake", for: "of b")
        }
        try a.use { vault in
            let slot = try #require(try vault.slots().last)
            _ = try vault.rotateKeys(keeping: [TestDevice.key], removing: [slot.id])
            try vault.store("fake after", for: "after")
        }
        let own = a.file
        try a.receive(b.file)
        for method in [leaked, TestDevice.key] {
            let vault = try BlockingFileVault.open(
                at: SimulatedVault.location(on: a.disk), configuration: SimulatedVault.configuration())
            #expect(failure { try vault.unlock(with: method) }?.code == .forked)
        }
        try a.receive(own)
        #expect(try a.use { try $0.value(of: "after") } == "fake after")
    }

    @Test func aForkInTheSameEpochIsToldFromAnOlderFile() throws {
        let old = a.file
        try b.use { vault in for number in 1...3 { try vault.store("fake", for: "b \(number)") } }
        try a.use { vault in for number in 1...2 { try vault.store("fake", for: "a \(number)") } }
        try a.receive(b.file)
        #expect(code(a) == .forked)
        try a.receive(old)
        #expect(code(a) == .rolledBack)
    }

    /// What another device made of the newest file is newer, however many epochs lie between.
    @Test func aDescendantIsOpened() throws {
        try a.use { try $0.store("kept", for: "important") }
        try b.receive(a.file)
        try b.use { vault in
            for round in 1...4 {
                for number in 1...7 { try vault.store("fake \(round)", for: "b \(number)") }
                try vault.delete("b \(round)")
                _ = try vault.compact()
            }
        }
        try a.receive(b.file)
        #expect(try a.use { try $0.value(of: "important") } == "kept")
        #expect(try a.use { try $0.verify().isClean })
        #expect(try a.use { try $0.status().rollbackProtection } == .anchored)
    }

    /// A compacted file that was cut off inside what it began with opens, and lacks items.
    @Test func aDescendantThatWasCutOffIsRefused() throws {
        try a.use { try $0.store("kept", for: "important") }
        try b.receive(a.file)
        try b.use { _ = try $0.compact() }
        let whole = b.file
        let frames = try Self.frames(of: b)
        for frame in frames where frame.header.groupStart == UInt64(VaultFormat.logStart) {
            var cut = whole
            for place in frame.end..<cut.count { cut[place] = 0 }
            try a.receive(cut)
            #expect(code(a) != nil, "cut behind \(frame.offset)")
        }
        try a.receive(whole)
        #expect(code(a) == nil)
    }

    /// More commits than a file remembers: it cannot tell, and says so.
    @Test func aFileThatCannotTellIsRefused() throws {
        let other = TestDevice()
        try other.receive(a.file)
        try other.use { _ in }
        try a.use { vault in
            for _ in 0...Ancestry.bound / 2 { try vault.store("fake", for: "busy") }
            _ = try vault.compact()
        }
        try other.receive(a.file)
        #expect(code(other) == nil)
        try a.use { vault in
            for _ in 0...Ancestry.bound { try vault.store("fake", for: "busy") }
            _ = try vault.compact()
        }
        #expect(code(a) == nil)
        try other.receive(a.file)
        let refused = failure { try other.use { _ in } }
        #expect(refused?.code == .forked && refused?.underlying?.contains("8192") == true, "\(refused)")
        try other.adopt()
        #expect(code(other) == nil)
    }

    @Test func adoptingAForkSettlesIt() throws {
        try b.use { try $0.store("of b", for: "b") }
        try a.use { try $0.store("of a", for: "a") }
        try a.receive(b.file)
        #expect(code(a) == .forked)
        try a.adopt()
        #expect(try a.use { try $0.values() } == ["first": "one", "b": "of b"])
        // The adopted file has every item of the other device.
        try b.receive(a.file)
        #expect(code(b) == nil)
    }

    /// A program that has the vault open writes to no file that another program was shown something else of.
    @Test func aWriterNoticesWhatAnotherProgramHasRead() throws {
        try b.use { try $0.store("of b", for: "b") }
        let writer = try a.opened()
        defer { writer.close() }
        let own = a.file
        // Another program reads the other file. Then the first file is overwritten in place with its own
        // bytes.
        try a.receive(b.file)
        #expect(try a.use { try $0.value(of: "b") } == "of b")
        try a.receive(own)
        #expect(failure { try writer.store("lost", for: "a") }?.code == .rolledBack)
    }

    private static func frames(of device: TestDevice) throws -> [ScannedFrame] {
        try device.use { vault in
            let session = try vault.session()
            var scanner = LogScanner(
                file: session.log.state.withLock { $0.file }, codec: session.log.codec, chunk: 1 << 16)
            return try scanner.scan(from: VaultFormat.logStart, previous: FrameCodec.chainStart).frames
        }
    }
}
