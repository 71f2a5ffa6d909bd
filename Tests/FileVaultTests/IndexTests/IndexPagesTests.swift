import Testing
import TokenVault
import TokenVaultCrypto
import TokenVaultPlatform

@testable import TokenVaultFile

/// Many pages in several frames: every record is found, and nothing else.
@Suite struct IndexPagesTests {
    private let codec: FrameCodec
    private let disk = SimulatedDisk()

    init() throws {
        codec = FrameCodec(
            vault: VaultIdentifier(bytes: [UInt8](repeating: 7, count: 16)),
            keys: try LogKeys(logKey: try SymmetricKey.random()))
    }

    private func entry(_ number: Int) -> IndexEntry {
        IndexEntry(
            offset: 16_896 + number * 8, metadataLength: 96, bodyLength: 104, generation: UInt64(number),
            serviceTag: 5, setTag: 0, valueTag: UInt64(number) << 40, keyVersion: 1,
            policy: UInt8(1 + number % 2))
    }

    private func write(_ records: [IndexRecord]) throws -> IndexReader {
        let file = try disk.directory(0).open("index \(records.count)", .create)
        let epoch = Epoch(number: 1, identifier: Bytes16(3, 3))
        let state = LogState(
            file: file, identity: try file.attributes().identity, size: 0, tail: VaultFormat.logStart,
            trailer: [], chain: FrameCodec.chainStart, head: FrameCodec.chainStart, sequence: 9, epoch: epoch,
            keybag: KeybagRecord(generation: 1, digest: .zero))
        var writer = IndexWriter(after: state, codec: codec)
        for record in records { try writer.add(record) }
        try writer.finish()
        let last = try #require(writer.frames.last)
        #expect(writer.frames.count == (records.count + 17_919) / 17_920 + 1)
        return try #require(try IndexReader(last, in: file, codec: codec, epoch: epoch))
    }

    @Test(arguments: [0, 1, 56, 57, 17_920, 17_921, 45_000])
    func everyRecordIsFound(count: Int) throws {
        var random = SeededGenerator(seed: UInt64(count))
        let items = (0..<count).map { _ in
            ItemIdentifier(
                high: .random(in: 0 ... .max, using: &random), low: .random(in: 0...9, using: &random))
        }.sorted()
        let reader = try write(items.enumerated().map { IndexRecord($1, entry($0), .newest) })
        #expect(reader.summary.items == count)
        #expect(reader.summary.classes.count == min(count, 2))
        for position in stride(from: 0, to: count, by: max(1, count / 700)) {
            #expect(try reader.newest(items[position]) == entry(position))
        }
        let known = Set(items)
        for high in [0, 1 << 20, 1 << 63, .max] as [UInt64] {
            let item = ItemIdentifier(high: high, low: 77)
            #expect(try known.contains(item) || reader.newest(item) == nil)
        }
        var seen = 0
        try reader.forEach { record in
            if record != IndexRecord(items[seen], entry(seen), .newest) { seen = -count }
            seen += 1
        }
        #expect(seen == count)
    }

    /// An item that was replaced often goes over several pages; others have the same upper half.
    @Test func recordsOfOneItemGoOverPages() throws {
        let often = ItemIdentifier(high: 1 << 40, low: 5)
        let before = ItemIdentifier(high: 1 << 40, low: 4)
        let after = ItemIdentifier(high: 1 << 40, low: 6)
        let first = (0..<62).map { ItemIdentifier(high: UInt64($0), low: 0) }
        var records = (first + [before]).enumerated().map { IndexRecord($1, entry($0), .newest) }
        records += (0..<200).map { IndexRecord(often, entry(100 + $0), $0 == 0 ? .newest : .replaced) }
        records.append(IndexRecord(after, entry(400), .newest))
        let reader = try write(records)
        #expect(try reader.newest(often) == entry(100))
        #expect(try reader.records(of: often).map(\.entry) == (0..<200).map { entry(100 + $0) })
        #expect(try reader.newest(before) == entry(62))
        #expect(try reader.newest(after) == entry(400))
        #expect(try reader.newest(ItemIdentifier(high: 1 << 40, low: 7)) == nil)
    }

    @Test func whatIsNoPageOrSummaryIsRefused() throws {
        var summary = IndexSummary(
            identifier: [UInt8](repeating: 1, count: 16), start: 16_896, sequence: 4,
            keybag: KeybagRecord(generation: 2, digest: Digest(of: [2])), records: 64,
            liveBytes: 400, fences: [1, 2])
        for number in 0..<3 { summary.count(entry(number)) }
        let bytes = summary.encoded()
        #expect(bytes.count.isMultiple(of: 8))
        #expect(try IndexSummary(decoding: bytes) == summary)
        for count in 0..<bytes.count {
            #expect(throws: FormatError.self) { try IndexSummary(decoding: Array(bytes[..<count])) }
        }
        // The first change has more items than records, the second more pages than needed, the third too many
        // bytes.
        for change in [(112, 65), (88, 1), (72, 200)] as [(Int, UInt8)] {
            var wrong = bytes
            wrong[change.0] = change.1
            #expect(throws: FormatError.self) { try IndexSummary(decoding: wrong) }
        }
        #expect(throws: FormatError.self) { try IndexSummary(decoding: bytes + [0]) }
    }

    @Test func openedPagesAreKeptAndTheirNumberIsBounded() throws {
        var cache = IndexPageCache(capacity: 3)
        func page(_ records: Int) throws -> IndexPage {
            try IndexPage(
                decoding: [UInt8](repeating: 0, count: IndexFormat.plaintextLength), count: records, fence: 0)
        }
        for number in 0..<10 { cache.keep(try page(number), as: number) }
        #expect(cache.count == 3)
        #expect((0..<10).map { cache.page($0)?.count } == [nil, nil, nil, nil, nil, nil, nil, 7, 8, 9])
        cache.keep(try page(4), as: 4)
        #expect(cache.page(7) == nil)
        #expect(cache.page(4)?.count == 4)
    }

    /// Items out of order would be listed and not found.
    @Test func aPageIsInOrder() throws {
        func page(_ items: [UInt64], fence: UInt64) throws -> IndexPage {
            var bytes = [UInt8](repeating: 0, count: IndexFormat.plaintextLength)
            for (position, item) in items.enumerated() {
                bytes.put(item, at: position * IndexRecord.length)
            }
            return try IndexPage(decoding: bytes, count: items.count, fence: fence)
        }
        #expect(try page([3, 3, 5], fence: 3).count == 3)
        #expect(throws: FormatError.self) { try page([3, 5, 4], fence: 3) }
        #expect(throws: FormatError.self) { try page([3, 3, 5], fence: 2) }
    }
}
