import FoundationEssentials
import Synchronization
import Testing
import TokenVault
import TokenVaultCrypto
import TokenVaultPlatform

@testable import TokenVaultFile

/// Files with numbers that no vault comes to. A holder of the vault's log key can authenticate them; for those of a
/// keybag's copy, no key is needed. Such a number ends no program and uses up no vault.
@Suite struct HostileNumbersTests {
    private let mine = TestDevice()
    private let other = TestDevice()

    /// Both devices have the vault with the item "first".
    private func create() throws {
        try mine.create()
        try mine.use { try $0.store("fake first", for: "first") }
        try other.receive(mine.file)
        try other.use { _ = try $0.values() }
    }

    /// A number in a keybag's copy.
    struct Field: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let offset: Int
        let length: Int

        static let all = [
            Field(testDescription: "the generation", offset: 32, length: 8),
            Field(testDescription: "the next slot", offset: 40, length: 4),
            Field(testDescription: "the date of a slot", offset: 52, length: 8),
        ]
    }

    /// One of the two copies has the number, and a checksum that fits: an unlock puts the good copy in its place.
    @Test(arguments: Field.all, [0, 1]) func aCopyOfTheKeybagIsReplaced(_ field: Field, _ copy: Int) throws {
        try create()
        for byte: UInt8 in [0xff, 0x7f] {
            var file = mine.file
            let start = copy * VaultFormat.keybagLength
            for place in 0..<field.length { file[start + field.offset + place] = 0xff }
            file[start + field.offset + field.length - 1] = byte
            let end = start + VaultFormat.keybagLength - 32
            file.replaceSubrange(end..<end + 32, with: Hash.digest(file, in: start..<end, length: 32))
            try mine.receive(file)
            #expect(try mine.use { try $0.value(of: "first") } == "fake first")
            let copies = mine.file.prefix(VaultFormat.pointerStart)
            #expect(copies.prefix(copies.count / 2) == copies.suffix(copies.count / 2))
        }
    }

    /// Appends a frame that the other device's log key authenticates, and returns the file.
    private func forge(
        generation: UInt64? = nil, _ draft: (FrameCodec, UInt64) throws -> FrameDraft
    ) throws -> [UInt8] {
        try other.use { vault in
            let log = try vault.session().log
            let state = log.state.withLock { $0 }
            let number = generation ?? state.sequence + 1
            let sealed = try log.codec.seal(
                draft(log.codec, number), generation: number, groupStart: state.tail, previous: state.chain,
                endsCommit: true)
            var file = other.file
            file.replaceSubrange(state.tail..<state.tail + sealed.bytes.count, with: sealed.bytes)
            return file
        }
    }

    /// The log names a keybag of the largest generation.
    @Test(arguments: [UInt64.max, UInt64.max - 1, 1 << 53]) func aNamedKeybagIsRefused(generation: UInt64)
        throws
    {
        try create()
        let forged = try forge { codec, number in
            let record = KeybagRecord(generation: generation, digest: Digest(of: [7]))
            return FrameDraft(
                type: .keybag,
                body: try codec.sealControl(record.encoded(), type: .keybag, generation: number))
        }
        #expect(failure { try mine.merge(forged) }?.code == .corrupt)
        #expect(try mine.use { try $0.value(of: "first") } == "fake first")
        try other.receive(forged)
        #expect(failure { try other.use { _ in } }?.code == .corrupt)
        #expect(
            failure { _ = try other.copy().restore(to: SimulatedVault.location(on: other.disk)) }?.code
                == .corrupt)
    }

    /// A commit whose number leaves room for no other.
    @Test(arguments: [UInt64(1), 2, 1 << 20]) func aCommitThatUsesUpTheNumbersIsNotMerged(left: UInt64) throws
    {
        try create()
        let forged = try forge(generation: VaultFormat.largestSequence - left) { _, _ in
            FrameDraft(type: .checkpoint)
        }
        let error = failure { try mine.merge(forged) }
        #expect(
            error?.code == .corrupt && error?.reason == .damagedCopy(.damaged(.numbers)),
            "\(String(describing: error))")
        try mine.use { vault in
            try vault.store("fake second", for: "second")
            #expect(try vault.values() == ["first": "fake first", "second": "fake second"])
        }
    }

    /// The same at the vault's path: what can be stored no more is refused, and all stays readable.
    @Test(arguments: [UInt64(0), 1, 2]) func aVaultWhoseNumbersAreUsedUpStaysReadable(left: UInt64) throws {
        try create()
        try other.receive(
            try forge(generation: VaultFormat.largestSequence - left) { _, _ in FrameDraft(type: .checkpoint)
            })
        let expected = TokenStorageError.Reason.damaged(.numbers)
        for round in 1...3 {
            let vault = try other.opened()
            defer { vault.close() }
            #expect(try vault.value(of: "first") == "fake first")
            let stored = failure { try vault.store("fake", for: "more") }
            #expect(stored.map { $0.code == .corrupt && $0.reason == expected } ?? (round == 1 && left == 2))
            let added = failure { _ = try vault.addSlot(SimulatedVault.key("second")) }
            #expect(added?.code == .corrupt && added?.reason == expected, "\(String(describing: added))")
            #expect(try vault.slots().count == 1)
        }
    }

    /// What decoders accept can be counted on: the next number is one too.
    @Test func recordsWithNumbersBeyondAllCountingAreRefused() throws {
        let keybag = KeybagRecord(generation: 1, digest: Digest(of: [7]))
        let epoch = Epoch(number: 1, identifier: Bytes16(7, 7))
        let record = GenesisRecord(epoch: epoch, baseSequence: 1, keybag: keybag)
        #expect(try GenesisRecord(decoding: record.encoded()) == record)
        let largest = VaultFormat.largestSequence
        let changes: [(inout GenesisRecord, UInt64) -> Void] = [
            { $0.epoch.number = $1 }, { $0.baseSequence = $1 }, { $0.keybag.generation = $1 },
        ]
        for change in changes {
            for number in [largest + 1, UInt64(Int64.max), .max] {
                var changed = record
                change(&changed, number)
                #expect(throws: FormatError.outOfBounds) { try GenesisRecord(decoding: changed.encoded()) }
            }
        }
    }

    /// A keybag under roots that a key rotation has replaced: a revoked holder may have made it.
    @Test(arguments: ["generation", "next slot", "removal"])
    func aCopyUnderFormerRootsAddsNoNumbers(_ field: String) throws {
        try create()
        let third = TestDevice()
        try third.enrol(in: mine)
        try mine.receive(third.file)
        let id = try #require(try third.use { try $0.devices().first(where: \.isThisDevice)?.id })
        try other.receive(mine.file)
        try mine.use { _ = try $0.rotateKeys(keeping: [TestDevice.key]) }
        try other.use { vault in
            let session = try vault.session()
            let roots = try vault.heldRoots(session)
            try vault.replaceKeybag(session, roots: roots) { keybag in
                switch field {
                case "next slot": keybag.nextSlot = .max - 1
                case "removal":
                    let set = keybag.sets.first { $0.device.hexadecimal == id }
                    keybag.sets.removeAll { $0.device.hexadecimal == id }
                    keybag.remember(removed: [
                        .init(device: set?.device ?? [], enrolled: Int64(VaultFormat.largestSequence))
                    ])
                default: break
                }
            }
            if field == "generation" {
                let session = try vault.session()
                try session.log.replaceKeybag(to: 1 << 40, roots: roots)
            }
        }
        let error = failure { try mine.merge(other.file) }
        #expect(
            (error?.reason == .damagedCopy(.damaged(.numbers))) == (field != "removal"),
            "\(String(describing: error))")
        #expect(try mine.use { try $0.addSlot(SimulatedVault.key("second")).id } == 2)
        #expect(try mine.use { try $0.removeDevice(id) } == 0)
        try third.receive(mine.file)
        #expect(try third.use { try $0.enrolDevice().isThisDevice })
    }

    /// The log key chooses the names of items. Names with equal halves lengthen no search.
    @Test(arguments: [false, true]) func namesThatCollideAreSpread(isLowHalfEqual: Bool) {
        var (chunk, newest) = ([SurveyedFrame](), NewestFrames(expecting: 1))
        for number in 0..<UInt64(20_000) {
            let item =
                isLowHalfEqual ? ItemIdentifier(high: number, low: 7) : ItemIdentifier(high: 7, low: number)
            let header = FrameHeader(
                type: RecordType.item.rawValue, endsCommit: true, policy: 1, keyVersion: 1, generation: 1,
                groupStart: 0, previous: FrameCodec.chainStart, item: item, serviceTag: 0, setTag: 0,
                metadataLength: 0, bodyLength: 0, contentDigest: FrameCodec.chainStart)
            chunk.append(SurveyedFrame(header, at: VaultFormat.logStart + chunk.count * Frame.overhead, []))
        }
        let chunks = stride(from: 0, to: chunk.count, by: 1_000).map { Array(chunk[$0..<$0 + 1_000]) }
        for (number, frames) in chunks.enumerated() {
            for (index, frame) in frames.enumerated() {
                newest.note(frame, at: FramePlace(chunk: number, index: index), in: chunks)
            }
        }
        #expect(newest.items == chunk.count)
        let longest = chunk.map { newest.distance(of: $0.item, in: chunks) }.max() ?? 0
        #expect(longest <= 4_096, "\(longest)")
        #expect(newest.place(of: chunk[7].item, in: chunks) == FramePlace(chunk: 0, index: 7))
        // The hash covers both halves of a name.
        let hashes = Set(chunk.map { $0.item.hashValue })
        #expect(hashes.count > chunk.count / 2)
    }

    /// Items of so many classes of keys that no index lists them: the vault goes on without one.
    @Test func itemsOfManyClassesNeedNoIndex() throws {
        try create()
        let forged = try other.use { vault in
            let log = try vault.session().log
            var (state, file) = (log.state.withLock { $0 }, other.file)
            for version in 1...UInt32(IndexSummary.mostClasses + 1) {
                let header = FrameHeader(
                    type: RecordType.item.rawValue, endsCommit: true,
                    policy: AccessPolicy.whenUnlocked.number,
                    keyVersion: version + 1, generation: state.sequence + 1, groupStart: UInt64(state.tail),
                    previous: state.chain, item: ItemIdentifier(high: UInt64(version), low: 7), serviceTag: 0,
                    setTag: 0, metadataLength: 0, bodyLength: 0, contentDigest: Digest(of: []))
                let sealed = try log.codec.seal(header, content: [])
                file.replaceSubrange(state.tail..<state.tail + sealed.bytes.count, with: sealed.bytes)
                (state.tail, state.chain) = (state.tail + sealed.bytes.count, sealed.chain)
                state.sequence += 1
            }
            return file + [UInt8](repeating: 0, count: 128 << 10)
        }
        try other.receive(forged)
        for round in 1...2 {
            for number in 1...10 { try other.use { try $0.store("fake \(round)", for: "\(number)") } }
            #expect(try other.use { try $0.value(of: "first") } == "fake first")
            #expect(try other.use { try $0.value(of: "10") } == "fake \(round)")
            _ = try other.copy().restore(to: SimulatedVault.location(on: other.disk))
        }
        #expect(try other.use { try $0.value(of: "10") } == "fake 2")
    }

    /// A clock may say anything.
    @Test(arguments: [Double.nan, .infinity, -.infinity, 1e300, -1e300, -1]) func anyClockWillDo(
        seconds: Double
    ) throws {
        var configuration = SimulatedVault.configuration()
        configuration.clock = { Date(timeIntervalSince1970: seconds) }
        let disk = SimulatedDisk()
        let vault = try BlockingFileVault.create(
            at: SimulatedVault.location(on: disk), unlockMethod: SimulatedVault.key("first"),
            configuration: configuration)
        defer { vault.close() }
        try vault.store("fake", for: "first")
        _ = try vault.addSlot(SimulatedVault.key("second"))
        #expect(try vault.value(of: "first") == "fake" && vault.slots().count == 2)
        #expect(try vault.devices().count == 1)
    }
}

extension VaultLog {
    /// Replaces the keybag by one of this generation, as a program does that counts otherwise.
    fileprivate func replaceKeybag(to generation: UInt64, roots: KeyRing.Roots) throws {
        var bytes: [UInt8] = []
        try replaceKeybag { (current) throws(TokenStorageError) in
            var keybag = current
            keybag.generation = generation
            try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                try KeybagKeys.sign(&keybag, roots: roots)
            }
            bytes = keybag.encoded() ?? []
            return bytes
        }
        // The record written here names the next generation, and leaves the file as after a crash.
        let now = state.withLock { $0 }
        let record = KeybagRecord(generation: generation, digest: Keybag.digest(of: bytes))
        let sealed = try codec.seal(
            FrameDraft(
                type: .keybag,
                body: try codec.sealControl(record.encoded(), type: .keybag, generation: now.sequence + 1)),
            generation: now.sequence + 1, groupStart: now.tail, previous: now.chain, endsCommit: true)
        try now.file.write(sealed.bytes, at: now.tail)
    }
}
