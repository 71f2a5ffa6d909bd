import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// A damaged index block or pointer costs time, and `verify` reports it. The damage does not change what a
/// reader finds.
@Suite struct IndexTamperTests {
    private func expectWhole(_ indexed: IndexedVault, reported: Bool, _ what: String) throws {
        let vault = try indexed.open()
        defer { vault.close() }
        #expect(try SimulatedVault.facts(of: vault) == indexed.facts, "\(what)")
        for (key, fact) in indexed.facts {
            let found = try vault.storage(service: SimulatedVault.service).retrieve(for: TokenKey(key))
            #expect(found == fact.value, "\(what)")
        }
        #expect(try vault.verify().isClean == !reported, "\(what)")
    }

    @Test func aDamagedPageCostsTime() throws {
        let indexed = try IndexedVault()
        let index = try #require(indexed.pointed)
        let pages = try #require(indexed.frames.last { $0.upperBound == index })
        try indexed.tamper { $0[pages.lowerBound + Frame.contentOffset + 700] ^= 1 }
        // The vault still opens by the index, and the first look-up reads the whole log.
        let vault = try indexed.open()
        #expect(try !vault.logState.isWalked)
        #expect(try vault.storage(service: SimulatedVault.service).retrieve(for: "key 0") == "value 0")
        #expect(try vault.logState.isWalked)
        #expect(try vault.status().notes.contains { $0.contains("the index is damaged") })
        try expectWhole(indexed, reported: true, "a damaged page")
        // The next commit writes another index.
        try vault.storage(service: SimulatedVault.service).store(token: "value 0", for: "key 0")
        #expect(try #require(indexed.pointed) > index)
        let next = try indexed.open()
        #expect(try !next.logState.isWalked)
        #expect(try next.storage(service: SimulatedVault.service).retrieve(for: "key 0") == "value 0")
    }

    @Test func aDamagedSummaryCostsTime() throws {
        let indexed = try IndexedVault()
        let index = try #require(indexed.pointed)
        try indexed.tamper { $0[index + Frame.contentOffset + 60] ^= 1 }
        try expectWhole(indexed, reported: true, "a damaged summary")
    }

    @Test func aWrongPointerCostsTime() throws {
        // These items also leave an older index.
        let indexed = try IndexedVault(items: 24)
        let right = try #require(indexed.pointed)
        let places = indexed.frames.map(\.lowerBound) + [0, 8_192, right + 8, 1 << 40, indexed.file.count]
        for place in places where place != right {
            let isIndex = try isIndex(place, in: indexed)
            try indexed.tamper { $0.put(IndexPointer(offset: place).encoded(), in: 0..<512, at: 16_384) }
            try expectWhole(indexed, reported: !isIndex, "a pointer to \(place)")
        }
        try indexed.tamper { $0.put([UInt8](repeating: 0, count: 512), in: 0..<512, at: 16_384) }
        try expectWhole(indexed, reported: false, "no pointer")
        for byte in [0, 9, 20, 100, 511] {
            try indexed.tamper { $0.put(IndexPointer(offset: right).encoded(), in: 0..<512, at: 16_384) }
            try indexed.tamper { $0[16_384 + byte] ^= 0x10 }
            try expectWhole(indexed, reported: true, "a damaged pointer, byte \(byte)")
        }
    }

    private func isIndex(_ place: Int, in indexed: IndexedVault) throws -> Bool {
        let vault = try indexed.open()
        defer { vault.close() }
        let state = try vault.logState
        var scanner = LogScanner(file: state.file, codec: try vault.session().log.codec, chunk: 4_096)
        return try scanner.frame(at: place)?.header.type == RecordType.index.rawValue
    }

    /// The log that compaction made has another epoch, and the same places.
    @Test func anIndexOfAnotherLifeOfTheLogIsNotBelieved() throws {
        let indexed = try IndexedVault()
        let vault = try indexed.open()
        _ = try vault.compact()
        vault.close()
        // Two compactions of the same file: both results have the same ancestors.
        let whole = indexed.disk.contents
        var files: [[UInt8]] = []
        for disk in [SimulatedDisk(whole), indexed.disk] {
            let again = try SimulatedVault.open(
                at: SimulatedVault.location(on: disk), tailBound: indexed.tailBound)
            _ = try again.compact()
            again.close()
            files.append(disk.contents.directories[0][SimulatedVault.name] ?? [])
        }
        let before = files[0]
        let (index, after) = (try #require(indexed.pointed), indexed.file)
        #expect(before.count == after.count && before != after)
        let frames = indexed.frames.filter { $0.upperBound == index || $0.lowerBound == index }
        #expect(frames.count == 2)
        for frame in frames {
            try indexed.tamper { $0.put(before.bytes(in: frame), in: 0..<frame.count, at: frame.lowerBound) }
        }
        // The block is authentic, but belongs to no place in this chain.
        let failure = #expect(throws: TokenStorageError.self) { try indexed.open() }
        #expect(failure?.code == .corrupt)
    }

    /// Pages of one index under the summary of another, which says the same of the same places.
    @Test func pagesOfAnotherIndexAreNotBelieved() throws {
        let indexed = try IndexedVault()
        let other = try IndexedVault()
        let frame = try #require(indexed.frames.last { $0.upperBound == indexed.pointed })
        let foreign = other.file.bytes(in: frame)
        try indexed.tamper {
            $0.put(
                foreign, in: Frame.contentOffset..<frame.count - 32,
                at: frame.lowerBound + Frame.contentOffset)
        }
        try expectWhole(indexed, reported: true, "pages of another vault")
    }

    @Test(.tags(.endurance), .from(.all)) func noBitOfAVaultWithAnIndexGoesUnnoticed() async throws {
        let vault = try TamperedVault.make(tailBound: 3).withFewZeros()
        for subject in [vault, vault.withoutAnchor()] {
            let wrong = await subject.unaccepted(
                BitFlipTests.flips(of: vault.file, in: 16_384..<vault.end, closely: false),
                apply: BitFlipTests.flip
            ) { _, verdict in verdict == .refused(.corrupt) || verdict == .reported }
            #expect(wrong == [])
        }
    }

    /// Frames taken out, swapped or put twice, in front of the index, in it and behind it: `verify` tells at least.
    @Test func noFrameIsMoved() async throws {
        let vault = try TamperedVault.make(tailBound: 3)
        let frames = vault.frames
        var orders: [[Int]] = []
        let all = Array(frames.indices)
        for first in all {
            for second in all where second != first {
                var order = all
                order[first] = second
                orders.append(order)
            }
            orders.append(all.filter { $0 != first })
        }
        let wrong = await vault.unaccepted(orders) { order, contents in
            let bytes = contents.directories[0][SimulatedVault.name] ?? []
            var changed = bytes.bytes(in: 0..<16_896)
            for index in order { changed += bytes.bytes(in: frames[index]) }
            changed.setCount(max(bytes.count, changed.count))
            contents.directories[0][SimulatedVault.name] = changed
        } accept: { _, verdict in
            switch verdict {
            case .refused(.corrupt), .refused(.rolledBack), .refused(.forked), .reported: true
            default: false
            }
        }
        #expect(wrong == [])
    }
}
