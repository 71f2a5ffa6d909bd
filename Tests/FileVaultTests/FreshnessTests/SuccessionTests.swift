import Synchronization
import Testing
import TokenVault
import TokenVaultCrypto
import TokenVaultPlatform

@testable import TokenVaultFile

/// Files under roots that a key rotation has replaced. An attacker with a revoked unlock method, an old copy and the
/// newer file can make them list every commit: the log keeps its key.
@Suite struct SuccessionTests {
    private let mine = TestDevice()
    private let other = TestDevice()
    static let leaked = SimulatedVault.key("second")
    private static let limited = SimulatedVault.key("third")

    /// Makes a vault with a leaked unlock method, and revokes it. Returns the file from before.
    private func revoke() throws -> [UInt8] {
        try mine.create()
        var slot: Int?
        try mine.use { vault in
            slot = try vault.addSlot(Self.leaked, scope: .all).id
            _ = try vault.addSlot(Self.limited, scope: .afterFirstUnlock)
            try vault.store("fake old", for: "old")
        }
        let before = mine.file
        try mine.use { vault in
            _ = try vault.rotateKeys(keeping: [TestDevice.key, Self.limited], removing: [slot ?? 0])
            try vault.store("fake new", for: "new")
        }
        return before
    }

    /// Returns the newer file with the keybag of the older one as the newest, which the leaked method opens. Unless
    /// `isNamed`, only the first copy of the keybag is that one, and the log names the other.
    static func forge(
        from older: [UInt8], over newer: [UInt8], classVersion: UInt32? = nil, isNamed: Bool = true,
        generationsAhead: UInt64 = 1,
        change: (inout Keybag, KeyRing.Roots) throws -> Void = { _, _ in }
    ) throws -> [UInt8] {
        var keybag = try Keybag(decoding: Array(older.prefix(VaultFormat.keybagLength)))
        let generation = try Keybag(decoding: Array(newer.prefix(VaultFormat.keybagLength))).generation
        let (slot, roots) = try KeybagKeys.openSlot(of: keybag, with: leaked)
        let ring = try KeybagKeys.ring(
            of: keybag, slot: slot.identifier, roots: roots, secrets: KeybagKeys.DeviceSecrets())
        keybag.generation = generation + generationsAhead
        if let classVersion {
            for policy in [AccessPolicy.whenUnlocked, .afterFirstUnlock] {
                keybag.sets[0].keys.append(
                    try KeybagKeys.freshClass(
                        policy, version: classVersion, vault: keybag.vault, roots: roots,
                        secrets: KeybagKeys.DeviceSecrets()))
            }
        }
        try change(&keybag, roots)
        try KeybagKeys.sign(&keybag, roots: roots)
        let copy = try #require(keybag.encoded())
        guard isNamed else { return copy + newer.dropFirst(copy.count) }
        let codec = FrameCodec(vault: keybag.vault, keys: ring.log)
        let attacker = TestDevice()
        try attacker.receive(newer)
        let file = try attacker.disk.directory(0).open(SimulatedVault.name, .readWrite)
        var reach = HighWaterMark()
        try reach.include(file, codec)
        let last = try #require(reach.lastFrame)
        let number = last.header.generation + 1
        let record = KeybagRecord(generation: keybag.generation, digest: Keybag.digest(of: copy))
        let frame = try codec.seal(
            FrameDraft(
                type: .keybag,
                body: try codec.sealControl(record.encoded(), type: .keybag, generation: number)),
            generation: number, groupStart: last.end, previous: last.chain, endsCommit: true)
        try file.write(copy + copy, at: 0)
        try file.write(frame.bytes, at: last.end)
        return attacker.file
    }

    private func expectRefused(
        _ device: TestDevice, with method: UnlockMethod = TestDevice.key,
        _ location: SourceLocation = #_sourceLocation
    ) {
        Self.expectRefusal(failure { try device.use { try $0.unlock(with: method) } }, location)
    }

    /// Expects the error for a file whose keys do not follow those that the device knows.
    static func expectRefusal(_ error: TokenStorageError?, _ location: SourceLocation) {
        #expect(
            error?.code == .forked && error?.reason == .ancestry(.unrelatedKeys), "\(error as Any)",
            sourceLocation: location)
    }

    @Test func aFileUnderFormerRootsIsRefusedAtThePath() throws {
        let before = try revoke()
        let newer = mine.file
        try other.receive(newer)
        try other.use { _ in }
        let forged = try Self.forge(from: before, over: newer)
        for device in [mine, other] {
            try device.receive(forged)
            expectRefused(device)
            let checked = try device.copy().verify()
            #expect(checked.isForked)
            // The forged file did not change the record of what this device has seen.
            try device.receive(newer)
            #expect(try device.use { try $0.value(of: "new") } == "fake new")
        }
        // A device without any record of the vault cannot tell.
        let stranger = TestDevice()
        try stranger.receive(forged)
        #expect(failure { try stranger.use { _ in } } == nil)
    }

    /// A session that leads to the after-first-unlock root only compares that.
    @Test func aLimitedSessionRefusesFormerRoots() throws {
        let before = try revoke()
        let forged = try Self.forge(from: before, over: mine.file)
        try other.receive(mine.file)
        for device in [mine, other] {
            if device.file == mine.file, let vault = try? limited(other) { vault.close() }
            try device.receive(forged)
            let error = failure { try limited(device).close() }
            #expect(
                error?.code == .forked && error?.reason == .ancestry(.unrelatedKeys), "\(error as Any)")
        }
    }

    private func limited(_ device: TestDevice) throws -> BlockingFileVault {
        let vault = try BlockingFileVault.open(
            at: SimulatedVault.location(on: device.disk),
            configuration: SimulatedVault.configuration(tailBound: 6))
        do {
            try vault.unlock(with: Self.limited)
        } catch {
            vault.close()
            throw error
        }
        return vault
    }

    /// The revoked holder still has the limited key. Its root proves nothing to a session that opens everything.
    @Test func aLimitedKeyDoesNotProveTheRoot() throws {
        let before = try revoke()
        let now = try Keybag(decoding: Array(mine.file.prefix(VaultFormat.keybagLength)))
        let (_, held) = try KeybagKeys.openSlot(of: now, with: Self.limited)
        let forged = try Self.forge(from: before, over: mine.file) { keybag, roots in
            let key = try KeybagKeys.derive(held.holder, "tokenvault 1 succession", [now.vault.bytes])
            let wraps = try [roots.all, roots.holder].map {
                try KeybagKeys.derive(
                    try #require($0), "tokenvault 1 succession wrap", [now.vault.bytes])
            }
            let data = KeybagKeys.associatedData("succession", [now.vault.bytes])
            keybag.formerRoots.all = try KeybagKeys.seal([key], wraps[0], data)
            keybag.formerRoots.holder = try KeybagKeys.seal([key], wraps[1], data)
        }
        try mine.receive(forged)
        expectRefused(mine)
    }

    /// A program that has the vault open loses its keys, and does not get them back.
    @Test func anOpenSessionRefusesFormerRoots() throws {
        let before = try revoke()
        let forged = try Self.forge(from: before, over: mine.file)
        let vault = try mine.opened()
        defer { vault.close() }
        try mine.disk.directory(0).open(SimulatedVault.name, .readWrite).write(forged, at: 0)
        let stored = failure { try vault.store("fake secret", for: "secret") }
        #expect(stored?.code == .locked, "\(stored as Any)")
        let unlocked = failure { try vault.unlock(with: TestDevice.key) }
        #expect(
            unlocked?.code == .forked && unlocked?.reason == .ancestry(.unrelatedKeys), "\(unlocked as Any)")
        #expect(failure { try vault.store("fake secret", for: "secret") }?.code == .locked)
    }

    /// A copy that looks rotated after the vault, with and without higher class versions.
    @Test(arguments: [nil, UInt32(9)]) func aMergeTakesNoFormerRoots(_ version: UInt32?) throws {
        let before = try revoke()
        let forged = try Self.forge(from: before, over: mine.file, classVersion: version)
        let report = try mine.merge(forged)
        #expect(report.notes.contains { $0.contains("before a key rotation") }, "\(report)")
        let slots = try mine.use { try $0.slots().map(\.id) }
        #expect(slots == [1, 3])
        try mine.use { try $0.store("fake after", for: "after") }
        let stolen = TestDevice()
        try stolen.receive(mine.file)
        #expect(failure { try stolen.use { try $0.unlock(with: Self.leaked) } }?.code == .wrongPassphrase)
    }

    /// A forged copy lists many former roots for R, and one for A again and again.
    @Test func aMergeKeepsBothListsAsLongAsEachOther() throws {
        let before = try revoke()
        let forged = try Self.forge(from: before, over: mine.file) { keybag, roots in
            let keys = try (1...Keybag.FormerRoots.most).map { _ in try SymmetricKey.random() }
            let wraps = try [roots.all, roots.holder].map {
                try KeybagKeys.derive(
                    try #require($0), "tokenvault 1 succession wrap", [keybag.vault.bytes])
            }
            let data = KeybagKeys.associatedData("succession", [keybag.vault.bytes])
            keybag.formerRoots.all = try KeybagKeys.seal(keys, wraps[0], data)
            keybag.formerRoots.holder = try KeybagKeys.seal(keys.map { _ in keys[0] }, wraps[1], data)
        }
        _ = try mine.merge(forged)
        #expect(try mine.use { try $0.slots().map(\.id) } == [1, 3])
        let merged = try Keybag(decoding: Array(mine.file.prefix(VaultFormat.keybagLength)))
        #expect(merged.formerRoots.count == Keybag.FormerRoots.most)
        #expect(merged.formerRoots.all.count == merged.formerRoots.holder.count)
        try limited(mine).close()
    }

    /// The forged file is at the path. Nothing that is merged into it makes it the vault.
    @Test(arguments: [nil, UInt32(9)]) func aMergeIntoFormerRootsIsRefused(_ version: UInt32?) throws {
        let before = try revoke()
        let newer = mine.file
        let forged = try Self.forge(from: before, over: newer, classVersion: version)
        try mine.receive(forged)
        for file in [newer, before] {
            for isRehearsal in [true, false] {
                let refused = failure { try mine.merge(file, isRehearsal: isRehearsal) }
                #expect(
                    refused?.reason == .ancestry(.keysRotatedInCopy)
                        || refused?.reason == .ancestry(.unrelatedKeys), "\(refused as Any)")
            }
        }
        #expect(mine.file == forged)
        expectRefused(mine)
    }

    /// Both sides rotate the keys. The merged file follows both, so that the two devices end up with one file.
    @Test func rotationsOnBothSidesComeTogether() throws {
        try mine.create()
        try other.receive(mine.file)
        for (device, name) in [(mine, "mine"), (other, "other")] {
            try device.use { vault in
                _ = try vault.rotateKeys(keeping: [TestDevice.key])
                try vault.store("fake \(name)", for: name)
            }
        }
        let (ours, theirs) = (mine.file, other.file)
        #expect(try mine.merge(theirs).taken == 1)
        #expect(try other.merge(ours).taken == 1)
        // Each device has merged the other's file. Now one of the two files replaces the other.
        _ = try mine.merge(other.file)
        _ = try other.merge(mine.file)
        #expect(other.file == mine.file)
        for device in [mine, other] {
            let values = try device.use { try $0.values() }
            #expect(values == ["mine": "fake mine", "other": "fake other"])
        }
        try other.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        try mine.receive(other.file)
        #expect(try mine.use { try $0.values() }.count == 2)
    }

    /// A device that was away may have missed as many rotations as a keybag lists.
    @Test func aDeviceKnowsTheKeysAgainAfterEightRotations() throws {
        try mine.create()
        try other.receive(mine.file)
        try other.use { _ in }
        for round in 1...Keybag.FormerRoots.most {
            try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
            let late = TestDevice()
            for (name, bytes) in other.disk.contents.directories[1] {
                try late.disk.directory(1).open(name, .create).write(bytes, at: 0)
            }
            try late.receive(mine.file)
            #expect(failure { try late.use { _ in } } == nil, "\(round)")
        }
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        try other.receive(mine.file)
        expectRefused(other)
        try other.adopt()
        #expect(failure { try other.use { _ in } } == nil)
        try other.receive(mine.file)
        #expect(failure { try other.use { _ in } }?.code == .rolledBack)
    }

    /// A program that opened the vault before the rotation goes on reading. What it records takes nothing back.
    @Test func anOlderSessionDoesNotTakeTheRootsBack() throws {
        try mine.create()
        try mine.use { _ = try $0.addSlot(Self.leaked, scope: .all) }
        let before = mine.file
        let old = try mine.opened()
        defer { old.close() }
        try mine.use { vault in
            _ = try vault.rotateKeys(keeping: [TestDevice.key], removing: [2])
        }
        for _ in 1...3 {
            _ = failure { _ = try old.listedKeys() }
            _ = failure { _ = try old.compact() }
            _ = failure { try old.store("fake", for: "late") }
        }
        try mine.receive(try Self.forge(from: before, over: mine.file))
        expectRefused(mine)
    }

    /// A restore decides for the copy's keys, whatever they are.
    @Test func aRestoreChoosesTheKeys() throws {
        let before = try revoke()
        let newer = mine.file
        try other.receive(newer)
        try other.use { _ in }
        try mine.receive(before)
        try mine.adopt()
        #expect(try mine.use { try $0.values() } == ["old": "fake old"])
        // From now on these roots and their successors are known.
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key, Self.limited, Self.leaked]) }
        #expect(try mine.use { try $0.slots().count } == 3)
        // Another device compares with its own record.
        try other.receive(mine.file)
        #expect(failure { try other.use { _ in } }?.code == .forked)
        try other.adopt()
        #expect(try other.use { try $0.values() } == ["old": "fake old"])
    }

    /// A keybag that is nearly full lists fewer former roots, and at least one.
    @Test func aFullKeybagListsFewerFormerRoots() throws {
        try mine.create()
        for _ in 1...Keybag.FormerRoots.most {
            try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        }
        let keybag = try Keybag(decoding: Array(mine.file.prefix(VaultFormat.keybagLength)))
        #expect(keybag.formerRoots.count == Keybag.FormerRoots.most)
        let (slot, roots) = try KeybagKeys.openSlot(of: keybag, with: TestDevice.key)
        var counts: Set<Int> = []
        for keys in 40...60 {
            let before = filled(keybag, keys: keys)
            var change = RootChange(
                before: before, cost: .minimum, created: SimulatedVault.date, limit: .none)
            try change.choose(
                [(old: TestDevice.key, new: TestDevice.key)], removing: [], droppingOthers: true)
            do throws(TokenStorageError) {
                try change.derive(from: roots, slot: slot.identifier, secrets: KeybagKeys.DeviceSecrets())
                counts.insert(change.after.formerRoots.count)
            } catch {
                #expect(error.reason == .slots(.keysFull))
            }
        }
        #expect(counts.contains(1), "\(counts)")
        #expect(counts.contains(Keybag.FormerRoots.most), "\(counts)")
    }

    /// What a change of a nearly full keybag adds takes the place of the oldest former roots.
    @Test func aSlotTakesTheRoomOfFormerRoots() throws {
        try mine.create()
        for _ in 1...Keybag.FormerRoots.most {
            try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        }
        try mine.use { vault in
            let session = try vault.session()
            try vault.replaceKeybag(session, roots: try vault.heldRoots(session)) { keybag in
                let empty = keybag
                for keys in 1...90 {
                    let fuller = filled(empty, keys: keys)
                    guard fuller.encoded() != nil else { break }
                    keybag.sets = fuller.sets
                }
            }
            let before = session.ring.facts.succession
            _ = try vault.addSlot(Self.limited, scope: .all)
            let after = session.ring.facts.succession
            #expect(after.all.count < before.all.count && after.all.count > 1, "\(after.all.count)")
            // There is no room for one more root.
            var keybag = vault.state.withLock { $0.keybag }
            keybag.formerRoots.all += [UInt8](repeating: 1, count: SymmetricKey.length)
            keybag.formerRoots.holder += [UInt8](repeating: 1, count: SymmetricKey.length)
            #expect(keybag.encoded() == nil)
            #expect(after.all == Array(before.all.prefix(after.all.count)))
            #expect(after.holder == Array(before.holder.prefix(after.holder.count)))
        }
        #expect(failure { try mine.use { _ in } } == nil)
    }

    /// Returns the keybag with as many devices as there may be, which have so many keys in all.
    private func filled(_ keybag: Keybag, keys: Int) -> Keybag {
        var full = keybag
        let own = full.sets.count
        for number in own..<Keybag.maximumSets {
            full.sets.append(Keybag.ClassSet(device: [UInt8](repeating: UInt8(number), count: 16), keys: []))
        }
        for number in 0..<keys {
            let set = own + number % (Keybag.maximumSets - own)
            full.sets[set].keys.append(
                Keybag.WrappedClass(
                    policy: AccessPolicy.whenUnlockedThisDeviceOnly.number, version: UInt32(number + 1),
                    wrapped: keybag.sets[0].keys[0].wrapped))
        }
        return full
    }
}
