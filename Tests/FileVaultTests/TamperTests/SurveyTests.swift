import TestLanes
import Testing
import TokenVault
import TokenVaultCrypto
import TokenVaultPlatform

@testable import TokenVaultFile

/// A survey looks at a log on every processor, chunk by chunk. It finds what a walk along the log finds,
/// whatever was done to the log.
@Suite struct SurveyTests {
    /// What was found of a log.
    enum Finding: Equatable {
        struct Item: Equatable {
            let name: ItemIdentifier
            let entry: IndexEntry
        }

        case log(tail: Int, trailer: [UInt8], sequence: UInt64, keybag: KeybagRecord, chain: Digest, [Item])
        case error(TokenStorageError.Code, String?)

        init(_ state: LogState, _ items: [(ItemIdentifier, IndexEntry)]) {
            self = .log(
                tail: state.tail, trailer: state.trailer, sequence: state.sequence, keybag: state.keybag,
                chain: state.chain, items.map { Item(name: $0, entry: $1) })
        }
    }

    /// A vault whose log takes several chunks, with frames larger than one, and what it is on.
    struct Subject {
        let disk: SimulatedDisk
        let vault: BlockingFileVault
        let original: [UInt8]
        let frames: [Range<Int>]

        init() throws {
            disk = SimulatedDisk(try SimulatedVault.fresh())
            vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk), tailBound: 40)
            let storage = vault.storage(service: SimulatedVault.service)
            var random = SeededGenerator(seed: 7)
            for round in 0..<90 {
                let size =
                    round == 30
                    ? 900_000 : round % 7 == 0 ? 70_000 : Int.random(in: 0..<4_000, using: &random)
                try storage.store(
                    Secret([UInt8](repeating: 0x61, count: size)), for: TokenKey("key \(round)"))
                if round % 5 == 4 { try storage.store(token: "another", for: TokenKey("key \(round - 2)")) }
                if round % 9 == 8 { _ = try storage.delete(for: TokenKey("key \(round - 1)")) }
            }
            try storage.commit((0..<20).map { .store(Secret(utf8: "a \($0)"), for: TokenKey("batch \($0)")) })
            original = disk.contents.directories[0][SimulatedVault.name] ?? []
            frames = TamperedVault(contents: disk.contents, facts: [:]).frames
        }

        func replace(_ bytes: [UInt8]) throws {
            let file = try disk.directory(0).open(SimulatedVault.name, .readWrite)
            try file.resize(to: bytes.count)
            try file.write(bytes, at: 0)
        }

        /// What a walk and what a survey find.
        func findings() throws -> (walked: Finding, surveyed: Finding) {
            let session = try vault.session()
            let loader = session.log.loader
            let file = try disk.directory(0).open(SimulatedVault.name, .read)
            return (
                finding {
                    () throws(TokenStorageError) in
                    let state = try loader.loadLocked(file, .walking)
                    return Finding(state, try state.index.itemsByOffset())
                },
                finding {
                    () throws(TokenStorageError) in
                    let ring = session.ring
                    let surveyed = try loader.survey(file, checkingBy: { ContentChecker(ring: ring) }) { _ in
                    }
                    return Finding(surveyed.state, surveyed.log.itemsByOffset())
                }
            )
        }

        private func finding(_ body: () throws(TokenStorageError) -> Finding) -> Finding {
            do { return try body() } catch { return .error(error.code, error.underlying) }
        }
    }

    @Test func aWholeLogIsFoundWhole() throws {
        let subject = try Subject()
        #expect(subject.original.count > 5 * SurveyedChunk.length)
        #expect(subject.frames.contains { $0.count > SurveyedChunk.length })
        let (walked, surveyed) = try subject.findings()
        #expect(walked == surveyed)
        guard case .log(_, _, _, _, _, let items) = surveyed else {
            Issue.record("\(surveyed)")
            return
        }
        #expect(items.count == (try subject.vault.status().items))
    }

    @Test func aChangedByteIsFoundWhereItIs() throws {
        let subject = try Subject()
        var random = SeededGenerator(seed: 11)
        var found: [String: Int] = [:]
        for _ in 0..<200 {
            let frame = try #require(subject.frames.randomElement(using: &random))
            // The change is in the prefix, the header, the contents or the trailer.
            let length =
                [8, Frame.contentOffset, frame.count, frame.count].randomElement(using: &random) ?? 8
            let place = Int.random(in: frame.lowerBound..<frame.lowerBound + length, using: &random)
            var bytes = subject.original
            bytes[place] ^= UInt8(1) << UInt8.random(in: 0..<8, using: &random)
            try expectTheSame(subject, bytes, "byte \(place)", &found)
        }
        #expect(found.count >= 2, "\(found)")
    }

    @Test func aLogThatEndsSomewhereEndsThereForBoth() throws {
        let subject = try Subject()
        var random = SeededGenerator(seed: 13)
        var found: [String: Int] = [:]
        for number in 0..<120 {
            let frame = try #require(subject.frames.randomElement(using: &random))
            let place = [
                frame.lowerBound, frame.upperBound, Int.random(in: frame, using: &random),
                Int.random(in: frame, using: &random) / 512 * 512,
            ].randomElement(using: &random)
            guard let place, place > VaultFormat.logStart else { continue }
            var bytes = Array(subject.original[..<place])
            if number.isMultiple(of: 2) {
                bytes += [UInt8](repeating: 0, count: subject.original.count - place)
            }
            try expectTheSame(subject, bytes, "an end at \(place)", &found)
        }
        #expect(found.count >= 2, "\(found)")
    }

    @Test func framesInOtherPlacesAreFoundOutOfPlace() throws {
        let subject = try Subject()
        var random = SeededGenerator(seed: 17)
        var found: [String: Int] = [:]
        for _ in 0..<60 {
            let frames = subject.frames.shuffled(using: &random)
            let (first, second) = (frames[0], frames[1])
            var bytes = subject.original
            if first.count == second.count {
                bytes.replaceSubrange(first, with: subject.original[second])
                bytes.replaceSubrange(second, with: subject.original[first])
            } else {
                // One of the two frames is missing.
                bytes.removeSubrange(first)
            }
            try expectTheSame(subject, bytes, "frames \(first) and \(second)", &found)
        }
        #expect(found["damaged log"] ?? 0 > 0, "\(found)")
    }

    private func expectTheSame(
        _ subject: Subject, _ bytes: [UInt8], _ what: String, _ found: inout [String: Int]
    ) throws {
        try subject.replace(bytes)
        let (walked, surveyed) = try subject.findings()
        #expect(walked == surveyed, "\(what)")
        switch surveyed {
        case .log: found["log", default: 0] += 1
        case .error(.corrupt, _): found["damaged log", default: 0] += 1
        case .error(let code, _): found["\(code)", default: 0] += 1
        }
    }

    // MARK: - Which frames are newest

    @Test(.tags(.endurance), .from(.all)) func theNewestOfManyFramesAreThoseOfTheIndex() throws {
        var random = SeededGenerator(seed: 19)
        for size in [1, 500, 3_000, 40_000] {
            var log = SurveyedLog(expecting: 0)
            var index = LogIndex()
            // Names that share a slot, or the part of a name that a slot keeps, stay distinct.
            let names = (0..<UInt64(max(1, size / 3))).map { number in
                let high: UInt64 = (number % 4) << 62 | number
                let low: UInt64 = (number % 3) << 32 | number
                return ItemIdentifier(high: high, low: low)
            }
            var offset = VaultFormat.logStart
            var frames: [(SurveyedFrame, FrameHeader)] = []
            for _ in 0..<size {
                guard let name = names.randomElement(using: &random) else { continue }
                let type: RecordType = Int.random(in: 0..<4, using: &random) == 0 ? .deletion : .item
                let header = FrameHeader(
                    type: type.rawValue, endsCommit: true, policy: 1, keyVersion: 1,
                    generation: UInt64(offset),
                    groupStart: UInt64(offset), previous: .zero, item: name, serviceTag: 0, setTag: 0,
                    metadataLength: 64, bodyLength: 64, contentDigest: .zero)
                frames.append((SurveyedFrame(header, at: offset, []), header))
                offset += header.frameLength
            }
            for start in stride(from: 0, to: frames.count, by: 1_000) {
                var chunk = SurveyedChunk(start: frames[start].0.offset)
                chunk.frames = frames[start..<min(frames.count, start + 1_000)].map(\.0)
                log.append(chunk)
            }
            let end = frames[frames.count * 3 / 4].0.offset
            for isCut in [false, true] {
                if isCut { log.cut(at: end) }
                index = LogIndex()
                for (frame, header) in frames where !isCut || frame.offset < end {
                    if frame.isItem {
                        index.store(header.item, frame.entry)
                    } else {
                        index.remove(header.item)
                    }
                }
                #expect(try log.items == index.figures().items)
                for name in names { #expect(try log.entry(of: name) == index.entry(of: name)) }
                let expected = try index.itemsByOffset()
                #expect(log.itemsByOffset().map(\.0) == expected.map(\.0))
                #expect(log.itemsByOffset().map(\.1) == expected.map(\.1))
            }
        }
    }

    /// A survey holds one of these for each of a million frames. One more byte would cost eight.
    @Test func aFrameOfASurveyIsNineWords() {
        #expect(MemoryLayout<SurveyedFrame>.stride == 72)
    }
}
