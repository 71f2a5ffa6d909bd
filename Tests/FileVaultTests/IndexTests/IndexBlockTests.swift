import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultCore
@testable import TokenVaultFile

/// A vault with an index block is the same vault: what it holds, what is damaged and what is old.
@Suite struct IndexBlockTests {
    @Test func aVaultIsOpenedByItsIndex() throws {
        let indexed = try IndexedVault()
        let vault = try indexed.open()
        #expect(try !vault.logState.isWalked)
        #expect(try vault.logState.framesSinceIndex <= indexed.tailBound)
        #expect(try SimulatedVault.facts(of: vault) == indexed.facts)
        #expect(try vault.status().items == indexed.facts.count)
        #expect(try vault.storage(service: SimulatedVault.service).retrieve(for: "no such key") == nil)
        let report = try vault.verify()
        #expect(report.problems == [])
        #expect(report.items == indexed.facts.count)
    }

    /// Every change, seen by two processes whose indexes come and go, against a dictionary.
    @Test(arguments: 1...6) func anyHistoryIsTheSameWithAnIndex(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let disk = SimulatedDisk(try SimulatedVault.fresh())
        let location = SimulatedVault.location(on: disk)
        var vaults = try (0..<2).map { _ in try SimulatedVault.open(at: location, tailBound: 4) }
        var model: [String: String] = [:]
        for step in 0..<150 {
            let number = Int.random(in: 0..<2, using: &random)
            let storage = vaults[number].storage(service: SimulatedVault.service)
            let key = "key \(Int.random(in: 0..<24, using: &random))"
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<10:
                try storage.store(token: "value \(step)", for: TokenKey(key))
                model[key] = "value \(step)"
            case 10..<14:
                #expect(try storage.delete(for: TokenKey(key)) == (model[key] != nil))
                model[key] = nil
            case 14..<18: #expect(try storage.retrieve(for: TokenKey(key)) == model[key])
            case 18: _ = try vaults[number].compact()
            default:
                vaults[number].close()
                vaults[number] = try SimulatedVault.open(at: location, tailBound: 4)
            }
            if step % 10 == 9 {
                for vault in vaults {
                    #expect(try SimulatedVault.facts(of: vault).mapValues(\.value) == model)
                    #expect(try vault.status().items == model.count)
                }
            }
        }
        #expect(try vaults[0].verify().problems == [])
        #expect(try vaults[0].compact().sizeAfter > 0)
        #expect(try vaults[0].status().reclaimable ?? .max < 1_000)
        #expect(try SimulatedVault.facts(of: vaults[1]).mapValues(\.value) == model)
        for vault in vaults { vault.close() }
    }

    /// A reader takes another process's index block, and drops the frames that the block covers.
    @Test func aReaderTakesTheIndexOfAnother() throws {
        let indexed = try IndexedVault(items: 2)
        let reader = try indexed.open()
        let writer = try indexed.open()
        let before = try reader.logState.index.block?.offset
        for index in 0..<30 {
            try writer.storage(service: SimulatedVault.service)
                .store(token: "newer \(index)", for: TokenKey("key \(index % 5)"))
        }
        #expect(try SimulatedVault.facts(of: reader) == SimulatedVault.facts(of: writer))
        let state = try reader.logState
        #expect(state.index.block != nil && state.index.block?.offset != before)
        #expect(state.framesSinceIndex <= indexed.tailBound)
    }

    /// The watcher has not seen the last file but one. It learns that file's changes from the index of the
    /// last file, and still reports them.
    @Test func aWatcherIsToldOfWhatAnIndexCovers() async throws {
        let indexed = try IndexedVault(items: 4)
        let watcher = try indexed.open()
        let watched = FileTokenStorage(watcher, service: SimulatedVault.service)
        var changes = watched.changes().makeAsyncIterator()
        let writer = try indexed.open()
        let storage = writer.storage(service: SimulatedVault.service)
        _ = try writer.compact()
        var expected: [TokenKey: Generation] = [:]
        for index in 0..<20 {
            let key = TokenKey("new \(index % 15)")
            expected[key] = try storage.store(token: "value \(index)", for: key)
        }
        _ = try writer.compact()
        #expect(try writer.logState.index.block?.summary.sequence == 27)
        // The read makes the watcher look once. The last change ends the loop below, whatever else is
        // reported.
        #expect(try await watched.retrieve(for: "new 3") == "value 18")
        expected["last"] = try storage.store(token: "value", for: "last")
        #expect(try await watched.retrieve(for: "last") == "value")
        var told: [TokenKey: Generation] = [:]
        while told["last"] == nil, case .stored(let key, let generation)? = await changes.next() {
            told[key] = generation
        }
        #expect(told == expected)
    }

    /// The file is too large to be compacted at each deletion. The deleting program has not seen the older
    /// values: only the index knows where they are.
    @Test func deletingErasesWhatOnlyTheIndexKnows() throws {
        let indexed = try IndexedVault(items: 3, tailBound: 6)
        let first = try indexed.open()
        let storage = first.storage(service: SimulatedVault.service)
        try storage.store(token: VaultWorkload.text("large", 1_048_000), for: "large")
        for version in 0..<2 { try storage.store(token: "a secret that goes \(version)", for: "key 2") }
        let item = try first.session().log.codec.item(service: SimulatedVault.service, key: "key 2")
        for index in 0..<8 { try storage.store(token: "after \(index)", for: "other") }
        first.close()

        let second = try indexed.open()
        let state = try second.logState
        #expect(!state.isWalked)
        let places = try #require(try state.index.block?.records(of: item)).map(\.entry)
        #expect(places.count == 3)
        #expect(try second.storage(service: SimulatedVault.service).delete(for: "key 2"))
        let bytes = indexed.file
        for place in places {
            #expect(
                bytes[place.contentStart..<place.contentStart + place.contentLength].allSatisfy { $0 == 0 })
        }
        #expect(try second.verify().problems == [])
        #expect(try indexed.open().verify().problems == [])
    }

    @Test func compactionOfAnUnseenLogFindsItsDamage() throws {
        let indexed = try IndexedVault()
        // The header of a value in front of the previous index.
        let frame = try #require(indexed.frames.dropFirst(2).first)
        try indexed.tamper { $0[frame.lowerBound + 40] ^= 1 }
        let vault = try indexed.open()
        #expect(try SimulatedVault.facts(of: vault) == indexed.facts)
        let failure = #expect(throws: TokenStorageError.self) { try vault.compact() }
        #expect(failure?.code == .corrupt)
        #expect(try !vault.verify().isClean)
        #expect(try SimulatedVault.facts(of: vault) == indexed.facts)
    }

    /// The anchor is one from before the index: only the whole log can be held against it.
    @Test func anAnchorInFrontOfTheIndexIsHeldAgainstTheLog() throws {
        let old = try IndexedVault(items: 2)
        let anchors = old.disk.contents.directories[1]
        let location = SimulatedVault.location(on: old.disk)
        let writer = try SimulatedVault.open(at: location, tailBound: 8)
        for index in 0..<20 {
            try writer.storage(service: SimulatedVault.service)
                .store(token: "value \(index)", for: TokenKey("key \(index)"))
        }
        let facts = try SimulatedVault.facts(of: writer)
        writer.close()
        var contents = old.disk.contents
        contents.directories[1] = anchors
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: SimulatedDisk(contents)))
        #expect(try vault.logState.isWalked)
        #expect(try SimulatedVault.facts(of: vault) == facts)
    }

    @Test func anOlderFileWithAnIndexIsRolledBack() throws {
        let indexed = try IndexedVault()
        let older = indexed.disk.contents.directories[0]
        let vault = try indexed.open()
        try vault.storage(service: SimulatedVault.service).store(token: "newer", for: "key 3")
        vault.close()
        var contents = indexed.disk.contents
        contents.directories[0] = older
        let failure = #expect(throws: TokenStorageError.self) {
            try SimulatedVault.open(at: SimulatedVault.location(on: SimulatedDisk(contents)))
        }
        #expect(failure?.code == .rolledBack)
    }
}
