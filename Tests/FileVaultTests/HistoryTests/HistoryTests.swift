import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// What an item had before its present value.
@Suite struct HistoryTests {
    private let sandbox: Sandbox
    private let vault: BlockingFileVault
    private var storage: FileTokenStorage.Blocking { vault.storage(service: "s") }

    init() throws {
        sandbox = try Sandbox()
        vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
    }

    private func code(_ body: () throws -> Void) -> TokenStorageError.Code? {
        do { try body() } catch { return (error as? TokenStorageError)?.code }
        return nil
    }

    /// Stores `values` one after the other.
    private func store(_ values: [String], as key: TokenKey = "k") throws -> [Generation] {
        try values.map { value in
            try #require(try storage.commit([.store(Secret(utf8: value), for: key)]).generation)
        }
    }

    private func generations(_ key: TokenKey = "k") throws -> [Generation] {
        try storage.history(of: key).items.map(\.generation)
    }

    @Test func undoBringsTheValueBeforeBack() async throws {
        let expiry = Date(timeIntervalSince1970: 2_000_000_000)
        let details = TokenDetails(
            policy: .whenUnlocked, label: "first", attributes: ["a": "1"], expiry: .at(expiry))
        try storage.commit([.store(Secret(utf8: "one"), for: "k", details: details)])
        let later = TokenDetails(
            policy: .afterFirstUnlock, label: "second", attributes: [:], expiry: .never)
        try storage.commit([.store(Secret(utf8: "two"), for: "k", details: later)])
        let before = try storage.history(of: "k").items
        #expect(before.map(\.policy) == [.afterFirstUnlock, .whenUnlocked])
        #expect(before.map(\.label) == ["second", "first"])

        try storage.undo("k")
        let item = try #require(try storage.item(for: "k"))
        #expect(item.secret.unprotectedText() == "one")
        #expect(item.metadata.label == "first" && item.metadata.attributes == ["a": "1"])
        #expect(item.metadata.expires == expiry)
        // A restored secret keeps its own policy.
        #expect(item.metadata.policy == .whenUnlocked && !item.metadata.isPolicyFromLimitedSession)
        #expect(try generations().count == 3)

        let async = FileTokenStorage(vault, service: "s")
        try await async.undo("k")
        #expect(try await async.retrieve(for: "k") == "two")
        #expect(try await async.history(of: "k").items.count == 4)
        #expect(try storage.metadata(for: "k")?.label == "second")
        #expect(try storage.metadata(for: "k")?.expires == nil)
    }

    @Test func undoTakesAnyValueThatIsStillThere() throws {
        let stored = try store(["a", "b", "c", "d"])
        #expect(try generations() == stored.reversed())
        try storage.undo("k", to: stored[1])
        #expect(try storage.retrieve(for: "k") == "b")
        #expect(code { try storage.undo("k", to: generations()[0]) } == .invalidArgument)
        #expect(code { try storage.undo("k", to: Generation(rawValue: 1_000)) } == .notFound)
        #expect(try storage.retrieve(for: "k") == "b")
    }

    @Test func whatIsNotThereHasNoHistory() throws {
        #expect(try storage.history(of: "k") == TokenListing(items: []))
        #expect(code { try storage.undo("k") } == .notFound)
        _ = try store(["only"])
        #expect(try generations().count == 1)
        #expect(code { try storage.undo("k") } == .notFound)
        try storage.commit([.rename("k", to: "new")])
        #expect(try generations().isEmpty && generations("new").count == 1)
    }

    @Test func aCommitMeanwhileIsAConflict() throws {
        _ = try store(["a", "b"])
        let change = try storage.changeToUndo("k", to: nil)
        _ = try store(["c"])
        #expect(code { try storage.commit([change]) } == .conflict)
        #expect(try storage.retrieve(for: "k") == "c")
    }

    /// In a small vault a deletion rewrites the file, in a large one it overwrites values.
    @Test(arguments: [false, true]) func aDeletionEndsTheHistory(isLarge: Bool) throws {
        if isLarge {
            for key in ["l1", "l2"] {
                _ = try store([String(repeating: "x", count: 1_000_000)], as: TokenKey(key))
            }
        }
        _ = try store(["a", "b"])
        try vault.keepReplacedValues(10)
        #expect(try storage.delete(for: "k"))
        #expect(try generations().isEmpty)
        let stored = try store(["c"])
        #expect(try generations() == stored)
        _ = try vault.compact()
        #expect(try generations() == stored)
        #expect(code { try storage.undo("k") } == .notFound)
        #expect(try vault.verify().isClean)
    }

    /// Stores three values of `k`, which are to be kept, and overwrites the bytes of the second one in the file.
    private func storeThreeAndOverwriteOne(with byte: UInt8) throws {
        _ = try store(["a", "b", "c"])
        try vault.keepReplacedValues(10)
        let log = try vault.session().log
        let (values, _) = try log.values(of: try log.codec.item(service: "s", key: "k"))
        let range = values[1].contentRange
        try PosixDirectory(sandbox.vault.removingLastComponent()).open("test.vault", .readWrite).write(
            [UInt8](repeating: byte, count: range.count), at: range.lowerBound)
    }

    /// A key rotation moves the kept values, and says how many of them are lost.
    @Test func aKeyRotationCountsDamagedValues() throws {
        try storeThreeAndOverwriteOne(with: 1)
        #expect(try vault.rotateKeys(keeping: [keyFile]).damagedValues == 1)
        #expect(try vault.rotateKeys(keeping: [keyFile]).damagedValues == 0)
    }

    /// Only a deletion erases values. Zeros in the place of one are damage, and are reported.
    @Test func anErasedValueIsNotForgotten() throws {
        try storeThreeAndOverwriteOne(with: 0)
        let history = try storage.history(of: "k")
        #expect(history.items.count == 2 && history.hidden == 1 && history.hiddenReasons == [.corrupt: 1])
        #expect(try vault.verify().problems.count == 1)
        #expect(try vault.compact().damagedValues == 1)
        #expect(try vault.verify().isClean && generations().count == 2)
        #expect(try vault.compact().damagedValues == 0)
    }

    /// The bytes of the values that compaction kept go with the item.
    @Test func aDeletionErasesEveryKeptValue() throws {
        for key in ["l1", "l2"] {
            _ = try store([String(repeating: "x", count: 1_000_000)], as: TokenKey(key))
        }
        _ = try store(["first fake", "second fake", "third fake"])
        try vault.keepReplacedValues(2)
        _ = try vault.compact()
        let log = try vault.session().log
        let (values, file) = try log.values(
            of: try log.codec.item(service: storage.service, key: "k"))
        #expect(values.count == 3)
        func bytes(of entry: IndexEntry) throws -> [UInt8] {
            try file.read(entry.contentRange.count, at: entry.contentRange.lowerBound)
        }
        for entry in values { #expect(try bytes(of: entry).contains { $0 != 0 }) }
        #expect(try storage.delete(for: "k"))
        for entry in values { #expect(try bytes(of: entry).allSatisfy { $0 == 0 }) }
        #expect(try vault.verify().isClean)
    }

    @Test func compactionKeepsWhatTheVaultIsToldTo() throws {
        #expect(try vault.status().keptValues == 0)
        let first = try store(["a", "b", "c", "d"])
        try vault.keepReplacedValues(2)
        let others = try store(["e"], as: "other")
        _ = try vault.compact()
        #expect(try generations() == [first[3], first[2], first[1]])
        #expect(try generations("other") == others)
        // Another process keeps the same number, and so does another compaction.
        let second = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try second.unlock(with: keyFile)
        #expect(try second.status().keptValues == 2)
        _ = try second.compact()
        #expect(try generations() == [first[3], first[2], first[1]])
        #expect(try second.status().reclaimable ?? .max < 1_000)
        try second.storage(service: "s").undo("k", to: first[1])
        #expect(try storage.retrieve(for: "k") == "b")
        _ = try vault.compact()
        #expect(try generations().count == 3)
        #expect(try vault.verify().isClean)
        try vault.keepReplacedValues(0)
        _ = try vault.compact()
        #expect(try generations().count == 1)
    }

    @Test func onlyTheOwnerSaysHowMuchIsKept() throws {
        #expect(code { try vault.keepReplacedValues(-1) } == .invalidArgument)
        #expect(code { try vault.keepReplacedValues(101) } == .invalidArgument)
        let recovery = RecoveryKey()
        let limited = UnlockMethod.keyFile(Secret(utf8: String(repeating: "f", count: 40)))
        _ = try vault.addSlot(.recoveryKey(recovery))
        _ = try vault.addSlot(limited, scope: .afterFirstUnlock)
        vault.lock()
        #expect(code { try vault.keepReplacedValues(1) } == .locked)
        let other = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        #expect(code { try other.keepReplacedValues(1) } == .locked)
        try other.unlock(with: limited)
        #expect(code { try other.keepReplacedValues(1) } == .notPermitted)
        #expect(try other.status().keptValues == 0)
    }

    /// A value stays under the policy that it was stored with.
    @Test func aLimitedSessionSeesNoValueOfAnotherPolicy() throws {
        let limited = UnlockMethod.keyFile(Secret(utf8: String(repeating: "f", count: 40)))
        _ = try vault.addSlot(.recoveryKey(RecoveryKey()))
        _ = try vault.addSlot(limited, scope: .afterFirstUnlock)
        try storage.store(token: "secret", for: "k", policy: .whenUnlocked)
        let secret = try generations()[0]
        try storage.store(token: "open", for: "k", policy: .afterFirstUnlock)
        let other = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try other.unlock(with: limited)
        let seen = try other.storage(service: "s").history(of: "k")
        #expect(seen.items.map(\.policy) == [.afterFirstUnlock])
        #expect(seen.hidden == 1 && seen.hiddenReasons == [.notPermitted: 1])
        #expect(code { try other.storage(service: "s").undo("k") } == .notPermitted)
        #expect(code { try other.storage(service: "s").undo("k", to: secret) } == .notPermitted)
        vault.lock()
        #expect(try storage.history(of: "k").hiddenReasons == [.locked: 1])
        #expect(code { try storage.undo("k") } == .locked)
        #expect(try storage.retrieve(for: "k") == "open")
    }

    /// A bait that a limited session left does not choose the policy of what comes after it.
    @Test func aLimitedSessionsPolicyIsNotBroughtBack() throws {
        let limited = UnlockMethod.keyFile(Secret(utf8: String(repeating: "f", count: 40)))
        _ = try vault.addSlot(.recoveryKey(RecoveryKey()))
        _ = try vault.addSlot(limited, scope: .afterFirstUnlock)
        let other = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try other.unlock(with: limited)
        try other.storage(service: "s").store(token: "bait", for: "k", policy: .afterFirstUnlock)
        _ = try store(["secret"])
        try storage.undo("k")
        #expect(try storage.retrieve(for: "k") == "bait")
        #expect(try storage.metadata(for: "k")?.policy == .whenUnlockedThisDeviceOnly)
        #expect(try storage.metadata(for: "k")?.isPolicyFromLimitedSession == false)
    }

    /// What a tightened policy is to keep from others does not stay where they can read it.
    @Test func aValueGoesWithItsPolicy() throws {
        let limited = UnlockMethod.keyFile(Secret(utf8: String(repeating: "f", count: 40)))
        _ = try vault.addSlot(.recoveryKey(RecoveryKey()))
        _ = try vault.addSlot(limited, scope: .afterFirstUnlock)
        try vault.keepReplacedValues(10)
        try storage.store(token: "a", for: "k", policy: .afterFirstUnlock, label: "a label")
        try storage.commit([.update("k", details: TokenDetails(policy: .whenUnlocked))])
        let stored = try store(["b"])
        let other = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try other.unlock(with: limited)
        let seen = try other.storage(service: "s").history(of: "k")
        #expect(seen.items.isEmpty && seen.hidden == 1)
        #expect(try generations().count == 3)
        _ = try vault.compact()
        #expect(try storage.history(of: "k").items.map(\.policy) == [.whenUnlocked, .whenUnlocked])
        #expect(try generations().first == stored[0])
    }

    /// Where the last passphrase is gone, so are the values that needed it.
    @Test func destroyedValuesAreNoHistory() throws {
        let passphrase = UnlockMethod.passphrase(Secret(utf8: "not a real passphrase"))
        let slot = try vault.addSlot(passphrase)
        vault.lock()
        try vault.unlock(with: passphrase)
        try vault.keepReplacedValues(5)
        try storage.store(token: "first", for: "k", policy: .whenUnlocked)
        try storage.store(token: "second", for: "k", policy: .whenPasscodeSetThisDeviceOnly)
        try storage.store(token: "third", for: "k", policy: .whenUnlocked)
        try vault.removeSlot(slot.id)
        #expect(try storage.history(of: "k").items.map(\.policy) == [.whenUnlocked, .whenUnlocked])
        try storage.undo("k")
        #expect(try storage.retrieve(for: "k") == "first")
        _ = try vault.compact()
        #expect(try vault.session().log.values(of: try item()).0.allSatisfy { $0.policy == 1 })
        #expect(try vault.verify().checkedByDigestOnly == 0)
    }

    /// A deletion makes in one moment what is worth a compaction.
    @Test func deletedValuesDoNotWaitForTheLogToGrow() throws {
        try vault.keepReplacedValues(100)
        let text = String(repeating: "x", count: 60_000)
        for round in 0..<60 { _ = try store(["\(round) \(text)"]) }
        #expect(try vault.logState.tail > 3_000_000)
        #expect(try storage.delete(for: "k"))
        _ = try store(["small"], as: "other")
        #expect(try vault.logState.tail < 200_000)
    }

    @Test func keptValuesAreSealedAgainByARevocation() throws {
        let stored = try store(["a", "b", "c"])
        try vault.keepReplacedValues(1)
        let report = try vault.rotateKeys(keeping: [keyFile])
        #expect(report.remaining == 0 && report.deferredReason == nil)
        #expect(try generations() == [stored[2], stored[1]])
        let versions = try vault.session().log.values(of: try item()).0.map(\.keyVersion)
        #expect(versions == [2, 2])
        #expect(try vault.currentKeybag(try vault.session()).hasSeveralVersions == false)
        try storage.undo("k")
        #expect(try storage.retrieve(for: "k") == "b")
        #expect(try vault.verify().isClean)
    }

    private func item() throws -> ItemIdentifier {
        try vault.session().log.codec.item(service: "s", key: "k")
    }

    /// What is kept counts as alive: the file is not rewritten again and again for it.
    @Test func keptValuesDoNotKeepCompactionBusy() throws {
        try vault.keepReplacedValues(100)
        let text = String(repeating: "x", count: 4_000)
        for round in 0..<100 { _ = try store(["\(round) \(text)"]) }
        let epoch = try vault.logState.epoch.number
        for round in 0..<150 { _ = try store(["\(round) \(text)"]) }
        let status = try vault.status()
        #expect(try vault.logState.epoch.number - epoch <= 3)
        #expect(status.fileSize < 4 << 20)
        #expect(try generations().count >= 101)
        _ = try vault.compact()
        #expect(try generations().count == 101)
    }

    @Test func aDamagedKeptValueIsNoObstacle() throws {
        let stored = try store(["a", "b", "c"])
        try vault.keepReplacedValues(2)
        let damaged = try #require(try vault.session().log.values(of: try item()).0.dropFirst().first)
        let file = try PosixDirectory(sandbox.vault.removingLastComponent()).open("test.vault", .readWrite)
        let byte = try file.read(1, at: damaged.bodyRange.lowerBound)
        try file.write([byte[0] ^ 1], at: damaged.bodyRange.lowerBound)
        #expect(code { try storage.undo("k") } == .corrupt)
        _ = try vault.compact()
        #expect(try generations() == [stored[2], stored[0]])
        #expect(try storage.retrieve(for: "k") == "c")
        #expect(try vault.verify().isClean)
    }

    /// Every change by two processes, with and without an index, against a list of values for each key.
    @Test(arguments: [4, 1_000], 1...4) func anyHistoryIsWhatWasStored(tailBound: Int, seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let location = SimulatedVault.location(on: SimulatedDisk(try SimulatedVault.fresh()))
        var vaults = try (0..<2).map { _ in try SimulatedVault.open(at: location, tailBound: tailBound) }
        var model: [TokenKey: [String]] = [:]
        var kept = 0
        for step in 0..<200 {
            let number = Int.random(in: 0..<2, using: &random)
            let storage = vaults[number].storage(service: SimulatedVault.service)
            let key = TokenKey("key \(Int.random(in: 0..<6, using: &random))")
            switch Int.random(in: 0..<24, using: &random) {
            case 0..<14:
                try storage.store(token: "value \(step)", for: key)
                model[key, default: []].insert("value \(step)", at: 0)
            case 14:
                #expect(try storage.delete(for: key) == (model[key] != nil))
                model[key] = nil
            case 15..<18:
                let isThere = try storage.history(of: key).items.count > 1
                #expect((code { try storage.undo(key) } == nil) == isThere)
                if isThere, let before = model[key]?[1] { model[key]?.insert(before, at: 0) }
            case 18..<20: _ = try vaults[number].compact()
            case 20:
                kept = Int.random(in: 0...3, using: &random)
                try vaults[number].keepReplacedValues(kept)
                // Compacts at once: a larger number cannot bring back values that an earlier number has
                // removed.
                _ = try vaults[number].compact()
            default:
                vaults[number].close()
                vaults[number] = try SimulatedVault.open(at: location, tailBound: tailBound)
            }
            for vault in vaults {
                let storage = vault.storage(service: SimulatedVault.service)
                for (key, values) in model {
                    let history = try storage.history(of: key).items.map(\.generation)
                    let item = try vault.session().log.codec.item(service: SimulatedVault.service, key: key)
                    let there = try history.map {
                        try vault.session().item(item, storedAs: $0)?.secret.unprotectedText()
                    }
                    #expect(there == Array(values.prefix(there.count)).map(Optional.some))
                }
            }
            for key in model.keys {
                let count = try vaults[0].storage(service: SimulatedVault.service).history(of: key).items
                    .count
                model[key] = Array(model[key]?.prefix(count) ?? [])
            }
        }
        #expect(try vaults[0].verify().problems == [])
        _ = try vaults[0].compact()
        for (key, values) in model {
            let history = try vaults[1].storage(service: SimulatedVault.service).history(of: key)
            #expect(history.items.count == min(kept + 1, values.count))
        }
        for vault in vaults { vault.close() }
    }
}
