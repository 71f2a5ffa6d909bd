import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultCrypto
import TokenVaultPlatform

@testable import TokenVaultFile

/// Files and keys that are replaced while this program writes.
@Suite struct ReplacedDuringWriteTests {
    private let device = TestDevice()

    /// Opens the vault of the device. `hook` runs before each `synchronize` of a file of the vault's directory.
    private func open(_ hook: @escaping @Sendable () -> Void) throws -> BlockingFileVault {
        let vault = try BlockingFileVault.open(
            at: VaultLocation(
                directory: HookedDirectory(device.disk.directory(0)) { () throws(SystemFailure) in hook() },
                name: SimulatedVault.name, state: device.disk.directory(1),
                path: SimulatedVault.location(on: device.disk).path),
            configuration: SimulatedVault.configuration(tailBound: 6))
        try vault.unlock(with: TestDevice.key)
        return vault
    }

    /// A forged file takes the vault's place during the sync of a commit, and another thread of the program reads.
    @Test func aCommitIsNotCountedIntoAForgedFile() throws {
        try device.create()
        let slot = try device.use { vault in
            try vault.store("fake old", for: "old")
            return try vault.addSlot(SuccessionTests.leaked, scope: .all).id
        }
        let before = device.file
        try device.use { _ = try $0.rotateKeys(keeping: [TestDevice.key], removing: [slot]) }
        let forged = Mutex<[UInt8]>([])
        let isDue = Mutex(false)
        let opened = Mutex<BlockingFileVault?>(nil)
        let device = device
        let vault = try open {
            guard
                isDue.withLock({ isDue in
                    defer { isDue = false }
                    return isDue
                })
            else { return }
            try? device.receive(forged.withLock { $0 })
            try? opened.withLock { $0 }?.refresh(thoroughly: false)
            _ = try? opened.withLock { $0 }?.value(of: "old")
        }
        defer { vault.close() }
        // The first store also flushes the writes of others. From the second store on, the only flush is that
        // of the commit.
        try vault.store("fake first", for: "first")
        let newer = device.file
        // The forged file lists every commit that this device has seen, so only its keys differ.
        let bytes = try SuccessionTests.forge(from: before, over: newer)
        forged.withLock { $0 = bytes }
        opened.withLock { $0 = vault }
        isDue.withLock { $0 = true }
        #expect(failure { try vault.store("fake", for: "late") }?.code == .outcomeUnknown)
        #expect(!isDue.withLock { $0 })
        opened.withLock { $0 = nil }
        try device.receive(newer)
        #expect(try device.use { try $0.values() } == ["old": "fake old", "first": "fake first"])
    }

    /// A lock that comes while the keys are rotated: the rotation is done, and reported.
    @Test func aLockDuringARotationTakesNothingBack() throws {
        try device.create()
        let slot = try device.use { vault in
            try vault.store("fake old", for: "old")
            try vault.storage(service: SimulatedVault.service).store(
                token: "fake open", for: "open", policy: .afterFirstUnlock)
            return try vault.addSlot(SuccessionTests.leaked, scope: .all).id
        }
        let isDue = Mutex(false)
        let opened = Mutex<BlockingFileVault?>(nil)
        let vault = try open { if isDue.withLock({ $0 }) { opened.withLock { $0 }?.lock() } }
        defer { vault.close() }
        opened.withLock { $0 = vault }
        isDue.withLock { $0 = true }
        let report = try vault.rotateKeys(keeping: [TestDevice.key], removing: [slot])
        isDue.withLock { $0 = false }
        opened.withLock { $0 = nil }
        #expect(report.removed.map(\.id) == [slot])
        #expect(try vault.value(of: "open") == "fake open")
        #expect(failure { _ = try vault.value(of: "old") }?.code == .locked)
        // The handle knows later keybags of the new root.
        try device.use { _ = try $0.addSlot(SimulatedVault.key("third"), scope: .all) }
        #expect(try vault.value(of: "open") == "fake open")
        try vault.unlock(with: TestDevice.key)
        #expect(try vault.value(of: "old") == "fake old")
    }

    /// With the log key, an attacker names an earlier keybag, which the same root has signed.
    @Test(arguments: [false, true]) func anEarlierKeybagIsNotNamedAgain(isLocked: Bool) throws {
        try device.create()
        try device.use { vault in
            try vault.store("fake old", for: "old")
            try vault.storage(service: SimulatedVault.service).store(
                token: "fake open", for: "open", policy: .afterFirstUnlock)
            _ = try vault.addSlot(SuccessionTests.leaked, scope: .all)
        }
        let earlier = Array(device.file.prefix(VaultFormat.keybagLength))
        try device.use { vault in
            try vault.removeSlot(2)
            _ = try vault.addSlot(SimulatedVault.key("third"), scope: .all)
        }
        let newer = device.file
        let vault = try device.opened()
        defer { vault.close() }
        if isLocked { vault.lock() }
        let (codec, tail, chain, sequence) = try vault.session().log.state.withLock { state in
            (try vault.session().log.codec, state.tail, state.chain, state.sequence)
        }
        let record = KeybagRecord(
            generation: try Keybag(decoding: earlier).generation, digest: Keybag.digest(of: earlier))
        let frame = try codec.seal(
            FrameDraft(
                type: .keybag,
                body: try codec.sealControl(record.encoded(), type: .keybag, generation: sequence + 1)),
            generation: sequence + 1, groupStart: tail, previous: chain, endsCommit: true)
        let file = try device.disk.directory(0).open(SimulatedVault.name, .readWrite)
        try file.write(earlier + earlier, at: 0)
        try file.write(frame.bytes, at: tail)
        for _ in 1...2 {
            #expect(failure { _ = try vault.value(of: "open") }?.code == .rolledBack)
            #expect(failure { try vault.store("fake", for: "late") }?.code == .rolledBack)
        }
        try device.receive(newer)
        #expect(try device.use { try $0.slots().map(\.id) } == [1, 3])
    }

    /// Runs a closure before one `synchronize`, counted from where it is set.
    private final class Trigger: Sendable {
        private let state = Mutex<(left: Int, body: @Sendable () -> Void)?>(nil)

        var isDone: Bool { state.withLock { $0 == nil } }

        func set(after count: Int, _ body: @escaping @Sendable () -> Void) {
            state.withLock { $0 = (count, body) }
        }

        func pull() {
            let body = state.withLock { state -> (@Sendable () -> Void)? in
                guard let now = state else { return nil }
                state = now.left > 0 ? (now.left - 1, now.body) : nil
                return now.left > 0 ? nil : now.body
            }
            body?()
        }
    }

    /// A program that synchronises folders puts a newer file in the place while this one compacts, and another program of
    /// this device stores there.
    @Test(arguments: [false, true]) func aCompactionReplacesNoOtherFile(isStoring: Bool) throws {
        try device.create()
        let other = TestDevice()
        let trigger = Trigger()
        let vault = try open { trigger.pull() }
        defer { vault.close() }
        try vault.store("fake first", for: "first")
        try other.receive(device.file)
        try other.use { try $0.store("fake other", for: "other") }
        let (newer, device) = (other.file, device)
        trigger.set(after: 0) {
            try? device.receive(newer)
            guard isStoring else { return }
            _ = try? device.use { try $0.store("fake late", for: "late") }
        }
        #expect(failure { _ = try vault.compact() }?.code == .conflict)
        #expect(trigger.isDone)
        var values = ["first": "fake first", "other": "fake other"]
        if isStoring { values["late"] = "fake late" }
        #expect(try device.use { try $0.values() } == values)
        try vault.refresh()
        #expect(try vault.values() == values)
        _ = try vault.compact()
        #expect(try device.use { try $0.values() } == values)
    }

    /// Another file is the vault during a commit or a compaction, gets an item, and goes again.
    @Test(arguments: [false, true]) func aWriteIsNotCountedBeyondAnotherFile(isCompaction: Bool) throws {
        try device.create()
        let trigger = Trigger()
        let vault = try open { trigger.pull() }
        defer { vault.close() }
        try vault.store("fake first", for: "first")
        let (former, device) = (device.file, device)
        trigger.set(after: 0) {
            let directory = device.disk.directory(0)
            try? directory.rename(SimulatedVault.name, to: "aside", replacing: true)
            try? device.receive(former)
            _ = try? device.use { try $0.store("fake late", for: "late") }
            try? directory.rename("aside", to: SimulatedVault.name, replacing: true)
        }
        let error = failure { () throws in
            if isCompaction { _ = try vault.compact() } else { try vault.store("fake", for: "second") }
        }
        #expect(error?.code == (isCompaction ? .conflict : .outcomeUnknown), "\(error as Any)")
        #expect(trigger.isDone)
        // The file lacks a stored item, and opening it reports that.
        #expect(failure { try device.use { _ in } }?.code == (isCompaction ? .rolledBack : .forked))
    }

    /// Another device's file, which has all that was stored here, takes the place while an index is written behind a commit.
    /// The new file has every acknowledged commit, so it is no fork.
    @Test func anIndexIsNotCountedIntoAFileThatWent() throws {
        try device.create()
        let other = TestDevice()
        let isDone = Mutex(false)
        let device = device
        let vault = try open {
            guard !isDone.withLock({ $0 }) else { return }
            let file = device.file
            var end = VaultFormat.logStart
            while let length = Frame.length(ofPrefix: file, at: end), length < IndexFormat.pageLength {
                end += length
            }
            // Only a frame with an index page is that long.
            guard Frame.length(ofPrefix: file, at: end) != nil else { return }
            try? other.receive(Array(file.prefix(end)) + [UInt8](repeating: 0, count: file.count - end))
            try? other.use { try $0.store("fake other", for: "other") }
            try? device.receive(other.file)
            isDone.withLock { $0 = true }
        }
        defer { vault.close() }
        var values = ["other": "fake other"]
        for number in 0..<20 where !isDone.withLock({ $0 }) {
            try vault.store("fake", for: "k\(number)")
            values["k\(number)"] = "fake"
        }
        #expect(isDone.withLock { $0 })
        #expect(try device.use { try $0.values() } == values)
        try vault.store("fake late", for: "late")
        values["late"] = "fake late"
        #expect(try device.use { try $0.values() } == values)
    }

    /// A restore or a merge replaces no file that came to the place after it looked.
    @Test(arguments: [false, true]) func aRestoreReplacesNoOtherFile(isMerge: Bool) throws {
        try device.create()
        try device.use { try $0.store("fake first", for: "first") }
        let (other, copy) = (TestDevice(), device.file)
        try other.receive(copy)
        try other.use { try $0.store("fake other", for: "other") }
        try device.use { try $0.store("fake second", for: "second") }
        let (newer, device) = (other.file, device)
        let isDone = Mutex(false)
        let progress: (Int, Int) -> Void = { done, total in
            guard done == total, !isDone.withLock({ $0 }) else { return }
            isDone.withLock { $0 = true }
            try? device.receive(newer)
        }
        let error = failure { () throws in
            if isMerge {
                _ = try device.merge(newer, progress: progress)
            } else {
                let opened = try device.copy()
                defer { opened.close() }
                _ = try opened.adopt(progress: progress)
            }
        }
        #expect(error?.code == .conflict && isDone.withLock { $0 }, "\(error as Any)")
        #expect(device.file == newer)
    }

    /// The file is replaced by one under the former keys as soon as the log names the new ones.
    @Test func aRotationIsKnownAsSoonAsItIsNamed() throws {
        try device.create()
        let slot = try device.use { vault in
            try vault.store("fake old", for: "old")
            return try vault.addSlot(SuccessionTests.leaked, scope: .all).id
        }
        let before = device.file
        let trigger = Trigger()
        let vault = try open { trigger.pull() }
        defer { vault.close() }
        try vault.store("fake first", for: "first")
        let device = device
        let isForged = Mutex(false)
        // The rotation writes the spare copy, then the commit that names it, then the other copy.
        trigger.set(after: 2) {
            guard let forged = try? SuccessionTests.forge(from: before, over: device.file) else { return }
            try? device.receive(forged)
            isForged.withLock { $0 = true }
        }
        _ = try? vault.rotateKeys(keeping: [TestDevice.key], removing: [slot])
        #expect(isForged.withLock { $0 })
        SuccessionTests.expectRefusal(failure { try device.use { _ in } }, #_sourceLocation)
    }

    /// An older file takes the place between the look at the newer one and the end of its opening. What was read of
    /// the newer one is remembered, or not answered.
    @Test func whatIsAnsweredIsRemembered() throws {
        try device.create()
        try device.use { try $0.store("fake first", for: "first") }
        let (other, older) = (TestDevice(), device.file)
        try other.receive(older)
        try other.use { try $0.store("fake late", for: "late") }
        try device.receive(other.file)
        let reads = Mutex(0)
        let device = device
        let vault = try BlockingFileVault.open(
            at: VaultLocation(
                directory: HookedDirectory(
                    device.disk.directory(0),
                    beforeReadingKeybags: {
                        let count = reads.withLock { reads in
                            reads += 1
                            return reads
                        }
                        if count == 2 { try? device.receive(older) }
                    }, beforeSynchronizing: { () throws(SystemFailure) in }),
                name: SimulatedVault.name, state: device.disk.directory(1),
                path: SimulatedVault.location(on: device.disk).path),
            configuration: SimulatedVault.configuration(tailBound: 6))
        defer { vault.close() }
        try vault.unlock(with: TestDevice.key)
        #expect(reads.withLock { $0 } >= 2 && device.file == older)
        let late = try vault.value(of: "late")
        let error = failure { try device.use { _ in } }
        #expect(late == nil ? error == nil : error?.code == .rolledBack, "\(late as Any) \(error as Any)")
    }

    /// A change of the slots that failed leaves this device remembering what it reads, also where another program changed
    /// them right before.
    @Test(arguments: [false, true]) func aFailedChangeOfSlotsLeavesReadingsNoted(isSecond: Bool) throws {
        try device.create()
        let vault = try device.opened()
        if isSecond { try device.use { _ = try $0.addSlot(SimulatedVault.key("third"), scope: .all) } }
        let older = device.file
        device.disk.inject(DiskFault(kind: .write, directory: 0, errno: .noSpace))
        #expect(failure { _ = try vault.addSlot(SuccessionTests.leaked, scope: .all) }?.code == .noSpace)
        device.disk.heal()
        let other = TestDevice()
        try other.receive(older)
        try other.use { try $0.store("fake late", for: "late") }
        try device.receive(other.file)
        try vault.refresh()
        #expect(try vault.value(of: "late") == "fake late")
        vault.close()
        try device.receive(older)
        #expect(failure { try device.use { _ in } }?.code == .rolledBack)
    }
}
