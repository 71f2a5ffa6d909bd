import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// Copying what is whole out of a damaged vault.
@Suite struct SalvageTests {
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox() }

    /// Genesis, checkpoint, then a frame for each of `a` to `e`, `a` once more; `e` was deleted.
    private func bytes() throws -> [UInt8] {
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let storage = vault.storage(service: "s")
        for key in ["a", "b", "c", "d"] { try storage.store(token: "first \(key)", for: TokenKey(key)) }
        try storage.store(token: "second a", for: "a")
        vault.close()
        return try sandbox.bytes()
    }

    private let all = ["a": "second a", "b": "first b", "c": "first c", "d": "first d"]

    /// Salvages the vault with these bytes; what was reported, and what is in the new vault.
    private func salvage(
        _ bytes: [UInt8], keepingAnchor: Bool = true
    ) throws -> (SalvageReport, [String: String]) {
        try sandbox.write(bytes)
        let directory = try PosixDirectory(sandbox.path.appending("state"))
        if !keepingAnchor {
            for name in try directory.names() where name.hasSuffix(".anchor") { try directory.remove(name) }
        }
        try? PosixDirectory(sandbox.vault.removingLastComponent()).remove("out.vault")
        let report = try sandbox.copy(nil).salvage(to: sandbox.path(of: "out.vault"))
        #expect(try sandbox.bytes() == bytes)
        // Opening the salvaged file must not change the record of what this device has seen.
        let anchors = try directory.names().filter { $0.hasSuffix(".anchor") }.map {
            ($0, try directory.open($0, .read).read(4_096, at: 0))
        }
        defer {
            for (name, bytes) in anchors {
                try? directory.remove(name)
                try? directory.open(name, .create).write(bytes, at: 0)
            }
        }
        if failure({ try sandbox.opened("out.vault", readingCopies: true).close() })?.code == .forked {
            // After such losses the user has to adopt the file.
            #expect(!report.losses.isEmpty || report.mayBeOlder > 0, "\(report)")
            for (name, _) in anchors { try directory.remove(name) }
        }
        let out = try sandbox.opened("out.vault", readingCopies: true)
        defer { out.close() }
        #expect(try out.verify().isClean)
        #expect(try out.status().items == report.items)
        return (report, try values(in: out))
    }

    @Test func ofAWholeVaultAllIsSaved() throws {
        let (report, found) = try salvage(try bytes())
        #expect(report.isComplete && report.mayBeOlder == 0 && report.itemsLost == 0 && report.notes.isEmpty)
        #expect(found == all)
        #expect(
            failure { _ = try sandbox.copy(nil).salvage(to: sandbox.path(of: "out.vault")) }?.code
                == .alreadyExists)
        // The salvaged file can take the vault's place.
        _ = try sandbox.copy("out.vault").restore(to: sandbox.vault)
        #expect(try values(in: try sandbox.opened()) == all)
    }

    /// A damaged header breaks the chain: the frames behind it are found all the same.
    @Test func behindABrokenChain() throws {
        var bytes = try bytes()
        let frames = frames(of: bytes)
        let b = frames[3]
        bytes[b.lowerBound + 50] ^= 1
        let (report, found) = try salvage(bytes)
        #expect(found == all.filter { $0.key != "b" })
        #expect(
            report.losses == [
                .init(offset: b.lowerBound, length: b.count, description: "bytes that are no frame")
            ])
        // `a` was stored again behind the damage, so it is known to be the newest. Nothing is in doubt.
        #expect(report.mayBeOlder == 0 && report.bytesSkipped == b.count)
    }

    @Test func whatMayBeOlderIsCounted() throws {
        var bytes = try bytes()
        let frames = frames(of: bytes)
        let d = frames[5]
        for offset in d { bytes[offset] = 0x77 }
        let (report, found) = try salvage(bytes)
        #expect(found == all.filter { $0.key != "d" })
        // The lost part may have replaced or deleted `b` or `c`.
        #expect(report.mayBeOlder == 2 && report.losses.count == 1)
    }

    /// A damaged value alone: its header tells which item it was, and an older value is better than none.
    @Test func anOlderValueIsSaved() throws {
        var bytes = try bytes()
        let frames = frames(of: bytes)
        bytes[frames[6].lowerBound + 200] ^= 1
        bytes[frames[4].lowerBound + 200] ^= 1
        let (report, found) = try salvage(bytes)
        #expect(found == ["a": "first a", "b": "first b", "d": "first d"])
        #expect(report.mayBeOlder == 1 && report.itemsLost == 1 && report.losses.count == 2)
    }

    @Test func whatWasDeletedStaysDeleted() throws {
        let whole = try bytes()
        let vault = try sandbox.opened()
        // The value is large, so deleting appends to the log rather than compacting it.
        try vault.storage(service: "s").store(Secret([UInt8](repeating: 1, count: 1 << 20)), for: "large")
        try vault.storage(service: "s").delete(for: "c")
        vault.close()
        #expect(try sandbox.bytes().count > whole.count)
        var bytes = try sandbox.bytes()
        bytes[frames(of: bytes)[2].lowerBound + 20] ^= 1
        let (report, found) = try salvage(bytes)
        #expect(found["c"] == nil && found["b"] == "first b" && report.losses.count == 1)
    }

    /// Bytes that came between, or went missing, move all that is behind.
    @Test(arguments: [1, 8, 13, 5_000]) func displacedFrames(by count: Int) throws {
        var bytes = try bytes()
        let place = frames(of: bytes)[4].lowerBound
        bytes.insert(contentsOf: [UInt8](repeating: 0x54, count: count), at: place)
        let (report, found) = try salvage(bytes)
        #expect(found == all && report.isComplete && report.notes.count == 1 && report.bytesSkipped == count)
        bytes.removeSubrange(place - 40..<place + count)
        let (lossy, rest) = try salvage(bytes)
        #expect(rest == all.filter { $0.key != "b" } && !lossy.isComplete)
    }

    /// A prefix is not sealed, and what is sealed tells it.
    @Test func aDamagedPrefixCostsNothing() throws {
        var bytes = try bytes()
        for frame in frames(of: bytes) { bytes[frame.lowerBound + 5] ^= 0xff }
        let (report, found) = try salvage(bytes)
        #expect(found == all && report.isComplete)
    }

    @Test func withoutItsFirstFrame() throws {
        var bytes = try bytes()
        for offset in frames(of: bytes)[0] { bytes[offset] = 0 }
        let (report, found) = try salvage(bytes)
        #expect(found == all && report.losses.count == 1)
        #expect(report.notes.count == 1, "\(report.notes)")
        #expect(try salvage(bytes, keepingAnchor: false).1 == all)
    }

    /// The report names commits that this device has seen and that are missing, and a file that ends early.
    @Test func aTruncatedVault() throws {
        let bytes = try bytes()
        let frames = frames(of: bytes)
        let cut = Array(bytes[..<(frames[5].lowerBound + 60)])
        let (report, found) = try salvage(cut)
        #expect(found == ["a": "first a", "b": "first b", "c": "first c"])
        #expect(report.mayBeOlder == 3 && report.losses.count == 1)
        // Without the anchor, the file looks as after a crash.
        let (unseen, rest) = try salvage(cut, keepingAnchor: false)
        #expect(rest == found && unseen.isComplete && unseen.notes.count == 1)
    }

    /// One copy of the keybag is enough; of two damaged ones the whole sectors make one.
    @Test func damagedKeybags() throws {
        var bytes = try bytes()
        bytes[40] ^= 1
        #expect(try salvage(bytes).1 == all)
        bytes[8_192 + 700] ^= 1
        #expect(try salvage(bytes).1 == all)
        bytes[8_192 + 40] ^= 1
        try sandbox.write(bytes)
        #expect(failure { _ = try sandbox.copy(nil) }?.code == .corrupt)
        for offset in 0..<16_384 { bytes[offset] = 0 }
        try sandbox.write(bytes)
        #expect(failure { _ = try sandbox.copy(nil) }?.code == .corrupt)
        try sandbox.write([UInt8](repeating: 0, count: 100_000))
        #expect(failure { _ = try sandbox.copy(nil) }?.code == .notAVault)
    }

    /// Old frames that an attacker appends bring nothing back: the order of commits decides.
    @Test func replayedFrames() throws {
        var bytes = try bytes()
        let frames = frames(of: bytes)
        let old = Array(bytes[frames[2]])
        bytes.replaceSubrange(frames[6].upperBound..<frames[6].upperBound + old.count, with: old)
        let (report, found) = try salvage(bytes)
        #expect(found == all && !report.isComplete)
    }

    /// What was replaced or removed since must not come back without a word.
    @Test func anOlderCopyIsToldToBeOne() throws {
        let vault = try sandbox.made()
        let slot = try vault.addSlot(.keyFile(Secret([UInt8](repeating: 0x42, count: 32))))
        let old = try sandbox.bytes()
        try vault.removeSlot(slot.id)
        try vault.storage(service: "s").store(token: "second a", for: "a")
        try vault.storage(service: "s").delete(for: "b")
        _ = try vault.compact()
        vault.close()
        let (report, found) = try salvage(old)
        #expect(found == ["a": "first a", "b": "first b"] && report.losses.isEmpty)
        #expect(report.isOlderThanSeen && !report.isComplete && report.notes.count == 2)
        #expect(try salvage(old, keepingAnchor: false).0.isComplete)
    }

    /// The file of another vault is at the path. The report says so, since nothing else of it is wrong.
    @Test func anotherVaultAtThePathIsNamed() throws {
        try sandbox.made().close()
        let elsewhere = try Sandbox()
        try elsewhere.made().close()
        #expect(try sandbox.copy(nil).salvage(to: sandbox.path(of: "first.vault")).notes.isEmpty)
        try sandbox.write(try elsewhere.bytes())
        let report = try sandbox.copy(nil).salvage(to: sandbox.path(of: "out.vault"))
        #expect(report.notes == ["this is not the vault that this device remembers at this path"])
    }

    /// Salvaging starts a new log. A key to a part of the vault does not permit that.
    @Test func itTakesWhatOpensEverything() throws {
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: .passphrase(Secret(utf8: "fake words")),
            configuration: sandbox.configuration)
        _ = try vault.addSlot(keyFile)
        vault.close()
        #expect(
            failure { _ = try sandbox.copy(nil).salvage(to: sandbox.path(of: "out.vault")) }?.code
                == .notPermitted)
        #expect(try sandbox.names == ["test.vault"])
    }

    /// What this holder has no keys for is saved too.
    @Test func itemsOfOthersAreSaved() throws {
        let vault = try sandbox.made()
        vault.close()
        var elsewhere = sandbox.configuration
        elsewhere.stateDirectory = sandbox.path.appending("elsewhere")
        var bytes = try sandbox.bytes()
        bytes[8_192 + 40] ^= 1
        try sandbox.write(bytes)
        let copy = try VaultCopy.open(at: sandbox.vault, configuration: elsewhere)
        #expect(failure { _ = try copy.salvage(to: sandbox.path(of: "out.vault")) }?.code == .locked)
        try copy.unlock(with: keyFile)
        #expect(try copy.salvage(to: sandbox.path(of: "out.vault")).items == 2)
        #expect(try values(in: try sandbox.opened("out.vault", readingCopies: true)).count == 2)
    }

    /// Whatever is damaged, nothing is found that was never there, and what is saved is a clean vault.
    @Test func nothingIsInvented() throws {
        let whole = try bytes()
        let end = try #require(frames(of: whole).last).upperBound
        let known = ["a": ["first a", "second a"], "b": ["first b"], "c": ["first c"], "d": ["first d"]]
        var (complete, partial) = (0, 0)
        for place in stride(from: VaultFormat.keybagLength - 100, to: end, by: 83) {
            for length in [1, 700] {
                var bytes = whole
                for offset in place..<min(place + length, end) { bytes[offset] ^= UInt8(1 + offset % 255) }
                let (report, found) = try salvage(bytes)
                for (key, value) in found { #expect(known[key]?.contains(value) == true, "byte \(place)") }
                if report.isComplete { #expect(found == all, "byte \(place)") }
                // The report counts every item that is missing or older.
                let older = all.count { found[$0.key] != nil && found[$0.key] != $0.value }
                #expect(report.mayBeOlder >= older, "byte \(place): \(report)")
                if report.isComplete { complete += 1 } else { partial += 1 }
            }
        }
        #expect(complete > 20 && partial > 40)
    }
}
