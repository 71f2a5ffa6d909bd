import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultCrypto
import TokenVaultPlatform

@testable import TokenVaultFile

/// Programs that have a vault open while an attacker with a revoked unlock method replaces its file.
@Suite struct ForgedFileTests {
    private let mine = TestDevice()

    /// Makes a vault with a leaked unlock method, and an item that is read while locked. Returns the number of the slot.
    private func create() throws -> Int {
        try mine.create()
        return try mine.use { vault in
            try vault.store("fake old", for: "old")
            try storage(vault).store(token: "fake open", for: "open", policy: .afterFirstUnlock)
            return try vault.addSlot(SuccessionTests.leaked, scope: .all).id
        }
    }

    private func revoke(_ slot: Int) throws {
        try mine.use { vault in
            _ = try vault.rotateKeys(keeping: [TestDevice.key], removing: [slot])
            try vault.store("fake new", for: "new")
        }
    }

    private func storage(_ vault: BlockingFileVault) -> some BlockingTokenStorage {
        vault.storage(service: SimulatedVault.service)
    }

    /// Expects that nothing is answered from the file, and nothing written to it.
    private func expectLocked(_ vault: BlockingFileVault, _ location: SourceLocation = #_sourceLocation) {
        func expect(_ what: String, _ body: () throws(TokenStorageError) -> Void) {
            let error = failure(body)
            #expect(error?.code == .locked, "\(what): \(error as Any)", sourceLocation: location)
        }
        let storage = vault.storage(service: SimulatedVault.service)
        for key in ["old", "open", "new", "none"] as [TokenKey] {
            expect("retrieve \(key)") { () throws(TokenStorageError) in _ = try storage.retrieve(for: key) }
            expect("metadata of \(key)") { () throws(TokenStorageError) in _ = try storage.metadata(for: key)
            }
            expect("history of \(key)") { () throws(TokenStorageError) in _ = try storage.history(of: key) }
            expect("delete \(key)") { () throws(TokenStorageError) in _ = try storage.delete(for: key) }
            for policy in [AccessPolicy.afterFirstUnlock, .whenUnlocked] {
                expect("store \(key) \(policy)") { () throws(TokenStorageError) in
                    try storage.store(token: "fake", for: key, policy: policy)
                }
            }
        }
        expect("list") { () throws(TokenStorageError) in _ = try storage.list(.all) }
        expect("delete all") { () throws(TokenStorageError) in _ = try storage.deleteAll() }
        expect("compact") { () throws(TokenStorageError) in _ = try vault.compact() }
    }

    /// When a program opened the vault, and whether it is locked by now.
    enum Opening: CaseIterable {
        case beforeRotation, beforeRotationLocked, afterRotation, afterRotationLocked
    }

    @Test(arguments: Opening.allCases, [0, 1] as [UInt64])
    func anOpenSessionUsesNothingOfAForgedFile(opening: Opening, generationsAhead: UInt64) throws {
        let slot = try create()
        let before = mine.file
        let isBefore = opening == .beforeRotation || opening == .beforeRotationLocked
        var open = isBefore ? try mine.opened() : nil
        defer { open?.close() }
        try revoke(slot)
        if !isBefore { open = try mine.opened() }
        let vault = try #require(open)
        if opening == .beforeRotationLocked || opening == .afterRotationLocked { vault.lock() }
        let newer = mine.file
        let forged = try SuccessionTests.forge(
            from: before, over: newer, classVersion: 2, generationsAhead: generationsAhead)
        try mine.receive(forged)
        // A read in a program with an open vault checks the file that the program has open.
        try vault.refresh()
        let locks = vault.lockCount
        expectLocked(vault)
        #expect(vault.lockCount == locks)
        let status = try vault.status()
        #expect(status.items == nil && status.notes.contains { $0.contains("unlock it again") })
        #expect(failure { try vault.unlock(with: TestDevice.key) }?.code == .forked)
        expectLocked(vault)
        #expect(mine.file == forged)
        // The forged file did not change the record of what this device has seen.
        try mine.receive(newer)
        let values = ["old": "fake old", "new": "fake new", "open": "fake open"]
        #expect(try mine.use { try $0.values() } == values)
        try vault.unlock(with: TestDevice.key)
        #expect(try vault.values() == values)
    }

    /// A keybag that another program changes while this one is locked is checked, and its items are still read.
    @Test func aLockedSessionGoesOnWithAnHonestKeybag() throws {
        _ = try create()
        let open = try mine.opened()
        defer { open.close() }
        open.lock()
        try mine.use { vault in
            _ = try vault.addSlot(SimulatedVault.key("third"), scope: .all)
            try vault.store("fake late", for: "late")
        }
        #expect(try open.value(of: "open") == "fake open")
        try storage(open).store(token: "fake locked", for: "locked", policy: .afterFirstUnlock)
        #expect(failure { _ = try open.value(of: "late") }?.code == .locked)
        try open.unlock(with: TestDevice.key)
        #expect(try open.value(of: "late") == "fake late")
    }

    /// The keys that a rotation elsewhere replaced are no lock that was ordered: an unlock under way is not undone.
    @Test func aRotationElsewhereIsNoOrderToLock() throws {
        let slot = try create()
        let open = try mine.opened()
        defer { open.close() }
        let orders = open.lockOrders
        try revoke(slot)
        #expect(failure { _ = try open.value(of: "old") }?.reason == .changedMeanwhile(.keys))
        #expect(open.lockOrders == orders)
        try open.unlock(with: TestDevice.key, unlessToldToLockSince: orders)
        #expect(try open.value(of: "new") == "fake new")
    }

    /// Another program changes the keybag right before this one rotates the keys: the rotation meets that keybag at once.
    @Test func aRotationMeetsTheKeybagOfAnotherProgram() throws {
        _ = try create()
        try mine.use { vault in
            let session = try vault.session()
            let roots = try vault.heldRoots(session)
            let slot = try mine.use { try $0.addSlot(SimulatedVault.key("third"), scope: .all).id }
            let fresh = try KeybagKeys.freshRoots(withPasscode: false, vault: session.ring.vault)
            var met: [Int] = []
            let error = failure { () throws(TokenStorageError) in
                try vault.replaceKeybag(session, roots: roots, to: fresh) {
                    (keybag) throws(TokenStorageError) in
                    met = keybag.slots.map { Int($0.identifier) }
                    throw .file(.conflict)
                }
            }
            #expect(error?.code == .conflict && met.contains(slot), "\(error as Any)")
            // The program holds the keys of that keybag, and continues.
            #expect(try vault.value(of: "old") == "fake old")
        }
    }

    /// Returns a vault's file under the keybag of `older`, with a log key of the attacker's.
    private func forgeLogKey(from older: [UInt8], generation: UInt64? = nil) throws -> [UInt8] {
        var keybag = try Keybag(decoding: Array(older.prefix(VaultFormat.keybagLength)))
        let (slot, roots) = try KeybagKeys.openSlot(of: keybag, with: SuccessionTests.leaked)
        let wrap = try KeybagKeys.derive(roots.holder, "tokenvault 1 log wrap", [keybag.vault.bytes])
        keybag.logKey = try KeybagKeys.seal(
            [try SymmetricKey.random()], wrap, KeybagKeys.associatedData("log key", [keybag.vault.bytes]))
        if let generation { keybag.generation = generation }
        try KeybagKeys.sign(&keybag, roots: roots)
        let ring = try KeybagKeys.ring(
            of: keybag, slot: slot.identifier, roots: roots, secrets: KeybagKeys.DeviceSecrets())
        let copy = try #require(keybag.encoded())
        let directory = SimulatedDisk().directory(0)
        var builder = try LogBuilder(
            file: try directory.open("forged", .create),
            codec: FrameCodec(vault: keybag.vault, keys: ring.log), tailBound: 6,
            epoch: Epoch(number: 9, identifier: .random()), baseSequence: 99, keybagCopy: copy,
            keybag: KeybagRecord(generation: keybag.generation, digest: Keybag.digest(of: copy)),
            ancestry: Ancestry())
        let state = try builder.finish()
        return try state.file.read(try state.file.attributes().size, at: 0)
    }

    @Test func aFileUnderAnotherLogKeyIsRefused() throws {
        let slot = try create()
        let before = mine.file
        try revoke(slot)
        let newer = mine.file
        try mine.receive(try forgeLogKey(from: before))
        for _ in 1...2 {
            let error = failure { try mine.use { _ in } }
            #expect(error?.code == .forked && error?.reason == .ancestry(.unrelatedKeys), "\(error as Any)")
        }
        #expect(try mine.copy().verify().isForked)
        let merging = failure { try mine.merge(newer) }
        #expect(merging?.reason == .ancestry(.nothingInCommon), "\(merging as Any)")
        try mine.receive(newer)
        #expect(try mine.use { try $0.value(of: "new") } == "fake new")
        // The user can adopt the forged file on purpose.
        try mine.receive(try forgeLogKey(from: before))
        let copy = try mine.copy()
        defer { copy.close() }
        #expect(try copy.adopt().notes.contains { $0.contains("slots are those of the copy") })
        #expect(try mine.use { try $0.values() } == [:])
        #expect(
            failure {
                try mine.receive(newer); try mine.use { _ in }
            }?.code == .forked)
    }

    /// One copy of the keybag is the attacker's, with another log key; the log names the other.
    @Test(arguments: [0, 1], [-1, 0, 1, 5])
    func aPlantedCopyWithAnotherLogKeyIsPassedOver(copy: Int, distance: Int) throws {
        let slot = try create()
        let before = mine.file
        try revoke(slot)
        var file = mine.file
        let generation = try Keybag(decoding: Array(file.prefix(VaultFormat.keybagLength))).generation
        let planted = try forgeLogKey(from: before, generation: UInt64(Int(generation) + distance))
        let place = copy * VaultFormat.keybagLength
        file.replaceSubrange(
            place..<place + VaultFormat.keybagLength, with: planted.prefix(VaultFormat.keybagLength))
        try mine.receive(file)
        #expect(try mine.use { try $0.value(of: "new") } == "fake new")
    }

    /// A backup put the directory back where the anchor is: the open one has no name any more.
    @Test func anAnchorThatWasReplacedIsLookedAt() throws {
        let slot = try create()
        let before = mine.file
        let open = try mine.opened()
        defer { open.close() }
        let state = mine.disk.directory(1)
        let name = try #require(try state.names().first { $0.hasSuffix(".anchor") })
        try revoke(slot)
        let bytes = try state.open(name, .read).read(2 * AnchorSlot.length, at: 0)
        try state.remove(name)
        try state.open(name, .create).write(bytes, at: 0)
        try mine.receive(try SuccessionTests.forge(from: before, over: mine.file))
        expectLocked(open)
    }

    /// While the names of the roots could not be noted, each read tries again.
    @Test func namesThatCouldNotBeNotedAreNotedLater() throws {
        try mine.create()
        let limited = SimulatedVault.key("third")
        try mine.use { _ = try $0.addSlot(limited, scope: .afterFirstUnlock) }
        let other = TestDevice()
        try other.receive(mine.file)
        let open = try BlockingFileVault.open(
            at: SimulatedVault.location(on: other.disk), configuration: SimulatedVault.configuration())
        defer { open.close() }
        try open.unlock(with: limited)
        let anchor = try open.session().log.anchor
        #expect(try anchor.read()?.roots.all == nil)
        let state = other.disk.directory(1)
        let name = try #require(try state.names().first { $0.hasSuffix(".anchor") })
        let lock = try state.open(name, .readWrite)
        #expect(try lock.tryLock(.exclusive))
        try open.unlock(with: TestDevice.key)
        #expect(try anchor.read()?.roots.all == nil)
        lock.unlock()
        #expect(try open.value(of: "none") == nil)
        #expect(try anchor.read()?.roots.all != nil)
    }

    /// An anchor that could only be read for a moment is written to as soon as it can be.
    @Test func anAnchorThatIsWritableAgainMoves() throws {
        try mine.create()
        mine.disk.inject(
            DiskFault(kind: .open, directory: 1, suffix: ".anchor", times: 1, errno: .permissionDenied))
        let open = try mine.opened()
        defer { open.close() }
        mine.disk.heal()
        try open.store("fake", for: "item")
        let session = try open.session()
        let sequence = session.log.state.withLock { $0.sequence }
        #expect(try session.log.anchor.read()?.sequence == sequence)
    }
}
