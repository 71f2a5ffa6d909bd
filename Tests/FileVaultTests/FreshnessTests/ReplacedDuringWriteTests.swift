import Synchronization
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
        // The first store also makes durable what others wrote. From the second one on, the only sync is the commit's.
        try vault.store("fake first", for: "first")
        let newer = device.file
        // It lists every commit that this device has seen: only its keys give it away.
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
        // Later keybags of the new root are known as such.
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
}
