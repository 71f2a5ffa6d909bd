import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// Programs that have a vault open while an attacker puts keys back that a key rotation replaced.
@Suite struct OpenSessionSuccessionTests {
    private let mine = TestDevice()
    private let other = TestDevice()
    private let third = TestDevice()

    /// Makes a vault with a leaked unlock method. Returns the number of its slot.
    private func create() throws -> Int {
        try mine.create()
        return try mine.use { vault in
            try vault.store("fake old", for: "old")
            return try vault.addSlot(SuccessionTests.leaked, scope: .all).id
        }
    }

    private func revoke(_ slot: Int, on device: TestDevice) throws {
        try device.use { vault in
            _ = try vault.rotateKeys(keeping: [TestDevice.key], removing: [slot])
            try vault.store("fake new", for: "new")
        }
    }

    private func expectRefused(
        _ vault: BlockingFileVault, _ location: SourceLocation = #_sourceLocation
    ) {
        SuccessionTests.expectRefusal(failure { try vault.unlock(with: TestDevice.key) }, location)
    }

    /// The program holds the root that the forged keybag is under, and has not seen the rotation.
    @Test func aSessionFromBeforeTheRotationTakesNoForgedKeys() throws {
        let slot = try create()
        let before = mine.file
        let old = try mine.opened()
        defer { old.close() }
        try revoke(slot, on: mine)
        let newer = mine.file
        try mine.receive(try SuccessionTests.forge(from: before, over: newer))
        for _ in 1...3 {
            #expect(failure { try old.store("fake secret", for: "secret") }?.code == .locked)
            #expect(failure { _ = try old.value(of: "old") }?.code == .locked)
        }
        expectRefused(old)
        try mine.receive(newer)
        #expect(try mine.use { try $0.values() } == ["old": "fake old", "new": "fake new"])
    }

    /// The program has not looked at the anchor since another program of the device noted the rotation.
    @Test func aForgeryInPlaceIsRefusedByWhatOtherProgramsHaveSeen() throws {
        let slot = try create()
        let before = mine.file
        try other.receive(before)
        try revoke(slot, on: other)
        let open = try mine.opened()
        defer { open.close() }
        try mine.receive(other.file)
        #expect(failure { try open.store("fake", for: "late") }?.code == .locked)
        try mine.use { _ in }
        let forged = try SuccessionTests.forge(from: before, over: mine.file)
        try mine.disk.directory(0).open(SimulatedVault.name, .readWrite).write(forged, at: 0)
        expectRefused(open)
        #expect(failure { try open.store("fake secret", for: "secret") }?.code == .locked)
    }

    /// The forged keybag claims the class versions that the session has.
    @Test(arguments: 1...3) func aLockedSessionWritesNothingBesideAForgedKeybag(version: UInt32) throws {
        let slot = try create()
        let before = mine.file
        try revoke(slot, on: mine)
        let newer = mine.file
        let open = try mine.opened()
        defer { open.close() }
        try mine.receive(try SuccessionTests.forge(from: before, over: newer, classVersion: version))
        for policy in [AccessPolicy.afterFirstUnlock, .whenUnlocked] {
            let stored = failure {
                try open.storage(service: SimulatedVault.service).store(
                    token: "fake", for: "late", policy: policy)
            }
            #expect(stored?.code == .locked, "\(stored as Any)")
        }
        try mine.receive(newer)
        #expect(try mine.use { try $0.value(of: "new") } == "fake new")
    }

    /// What an overtaken unlock knows of an earlier keybag replaces nothing.
    @Test func anEarlierKeybagIsNotTakenForTheOneInUse() throws {
        _ = try create()
        try mine.use { vault in
            let session = try vault.session()
            let state = session.log.state.withLock { $0 }
            #expect(session.log.anchor.hasOpened(state.keybag))
            let earlier = KeybagRecord(
                generation: state.keybag.generation - 1, digest: Digest(of: [7]))
            try session.log.noteOpening(under: session.ring.facts.succession, of: earlier)
            #expect(session.log.anchor.hasOpened(state.keybag))
            let foreign = Succession(all: [Bytes16(7, 7)], holder: [Bytes16(7, 7)])
            let refused = failure { try session.log.noteOpening(under: foreign, of: earlier) }
            #expect(refused?.code == .locked && refused?.reason == .changedMeanwhile(.keys))
        }
    }

    /// A merge keeps the root that this device knows in the list, whatever else has no room then.
    @Test func aMergeDoesNotLockItsOwnDeviceOut() throws {
        _ = try create()
        for (device, times) in [(other, Keybag.FormerRoots.most), (third, 4)] {
            try device.receive(mine.file)
            for round in 1...times {
                try device.use { vault in
                    _ = try vault.rotateKeys(keeping: [TestDevice.key], droppingOthers: true)
                    try vault.store("fake", for: "\(times) \(round)")
                }
            }
        }
        try mine.receive(other.file)
        _ = failure { try mine.merge(third.file) }
        #expect(failure { try mine.use { _ in } } == nil)
    }

    /// A planted copy of the keybag looks newer than the one in use, and the log is damaged.
    @Test func aSalvageTakesTheKeybagInUse() throws {
        let slot = try create()
        let before = mine.file
        try revoke(slot, on: mine)
        var planted = try SuccessionTests.forge(from: before, over: mine.file, isNamed: false)
        let end = try mine.use { try $0.session().log.state.withLock { $0.tail } }
        planted[end - 20] ^= 1
        try mine.receive(planted)
        let copy = try mine.copy()
        defer { copy.close() }
        let directory = mine.disk.directory(0)
        _ = try copy.salvage(
            to: VaultLocation(
                directory: directory, name: "saved", state: mine.disk.directory(1), path: "/simulated/saved"))
        let saved = try directory.open("saved", .read).read(VaultFormat.keybagLength, at: 0)
        #expect(try Keybag(decoding: saved).slots.map(\.identifier) == [1])
    }
}
