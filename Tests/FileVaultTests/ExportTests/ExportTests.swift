import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An export carries what may leave the device, whole, and nothing else; an import is all authentic or nothing.
@Suite struct ExportTests {
    static let passphrase = Secret(utf8: "fake words of the export")

    /// A vault with items of every policy that a key file leads to, in two services.
    private func vault(_ sandbox: Sandbox, _ name: String = "from.vault") throws -> BlockingFileVault {
        let vault = try BlockingFileVault.create(
            at: sandbox.path.appending(name), unlockMethod: keyFile, configuration: cheap(sandbox))
        return vault
    }

    private func cheap(_ sandbox: Sandbox) -> FileVaultConfiguration {
        var configuration = sandbox.configuration
        configuration.keyDerivationCost = .minimum
        return configuration
    }

    private func fill(_ vault: BlockingFileVault) throws {
        let first = vault.storage(service: "first")
        try first.store(
            Secret([0, 255, 10, 13]), for: "binary",
            details: TokenDetails(
                policy: .whenUnlocked, label: "a label",
                attributes: ["name": "value", "née": "e\u{301}"],
                expiry: .at(.init(timeIntervalSince1970: 2_000_000_000))))
        try first.store(token: "", for: "empty", policy: .afterFirstUnlock)
        try first.store(token: "fake-staying", for: "staying")
        let second = vault.storage(service: "second")
        try second.store(
            token: String(repeating: "x", count: 1 << 20), for: "large", policy: .whenUnlocked)
        try second.store(token: "fake", for: "e\u{301}", policy: .whenUnlocked)
        try second.store(token: "fake too", for: "\u{e9}", policy: .whenUnlocked)
    }

    private func items(_ vault: BlockingFileVault) throws -> [TokenItem] {
        try vault.listAllServices().items.map { metadata in
            try #require(try vault.storage(service: metadata.service).item(for: metadata.key))
        }
    }

    @Test func whatIsPortableArrivesWhole() throws {
        let sandbox = try Sandbox()
        let from = try vault(sandbox)
        try fill(from)
        let path = sandbox.path.appending("tokens.export")
        let report = try from.export(to: path, passphrase: Self.passphrase)
        #expect(report == ExportReport(items: 5, staying: 1))

        let to = try vault(sandbox, "to.vault")
        let imported = try to.importItems(from: path, passphrase: Self.passphrase)
        #expect(imported.added == 5 && imported.replaced + imported.skipped + imported.unchanged == 0)
        let expected = try items(from).filter { !$0.metadata.policy.isThisDeviceOnly }
        let found = try items(to)
        try #require(found.count == expected.count)
        for (found, expected) in zip(found, expected) {
            #expect(found.isSame(as: expected))
            #expect(found.metadata.key == expected.metadata.key)
            #expect(found.metadata.created == expected.metadata.created)
            #expect(found.metadata.modified == expected.metadata.modified)
        }
        #expect(try to.verify().isClean)
        // A second import finds all items already there.
        let again = try to.importItems(from: path, passphrase: Self.passphrase)
        #expect(again.unchanged == 5 && again.added + again.replaced + again.skipped == 0)
    }

    @Test func nothingIsOverwrittenOrLeftBehind() throws {
        let sandbox = try Sandbox()
        let from = try vault(sandbox)
        try fill(from)
        let path = sandbox.path.appending("tokens.export")
        var error = try #require(throws: TokenStorageError.self) {
            try from.export(to: path, passphrase: Self.passphrase, allOrNothing: true)
        }
        #expect(error.code == .wrongDevice)
        #expect(try !SmallFile.exists(path))
        error = try #require(throws: TokenStorageError.self) {
            try from.export(to: path, passphrase: Secret([]))
        }
        #expect(error.code == .invalidArgument)
        #expect(try !SmallFile.exists(path))

        _ = try from.export(to: path, passphrase: Self.passphrase)
        let attributes = try #require(try PosixDirectory(sandbox.path).attributes(of: "tokens.export"))
        #expect(attributes.mode == 0o600)
        error = try #require(throws: TokenStorageError.self) {
            try from.export(to: path, passphrase: Self.passphrase)
        }
        #expect(error.code == .alreadyExists)
        #expect(try PosixDirectory(sandbox.path).attributes(of: "tokens.export")?.size == attributes.size)

        from.lock()
        for body in [
            { _ = try from.export(to: "/nowhere/x", passphrase: Self.passphrase) },
            { _ = try from.importItems(from: path, passphrase: Self.passphrase) },
        ] {
            let error = try #require(throws: TokenStorageError.self) { try body() }
            #expect(error.code == .locked)
        }
    }

    @Test func conflictsFollowTheRule() throws {
        let sandbox = try Sandbox()
        let from = try vault(sandbox)
        try fill(from)
        let path = sandbox.path.appending("tokens.export")
        _ = try from.export(to: path, passphrase: Self.passphrase)
        let to = try vault(sandbox, "to.vault")
        let storage = to.storage(service: "second")
        try storage.store(token: "its own", for: "e\u{301}", policy: .whenUnlocked)

        let error = try #require(throws: TokenStorageError.self) {
            try to.importItems(from: path, passphrase: Self.passphrase)
        }
        #expect(error.code == .alreadyExists)
        #expect(try to.listAllServices().items.count == 1)

        let skipping = try to.importItems(from: path, passphrase: Self.passphrase, onConflict: .skip)
        #expect(skipping.added == 4 && skipping.skipped == 1)
        #expect(try storage.retrieve(for: "e\u{301}") == "its own")

        let replacing = try to.importItems(from: path, passphrase: Self.passphrase, onConflict: .replace)
        #expect(replacing.replaced == 1 && replacing.unchanged == 4)
        #expect(try storage.retrieve(for: "e\u{301}") == "fake")
    }

    /// Every bit of the front and of the messages, every length: refused before anything is stored. The key
    /// is derived once for each change of the front, so only some of its bits are tried.
    @Test func anyChangeIsRefusedBeforeAnythingIsStored() throws {
        let sandbox = try Sandbox()
        let from = try vault(sandbox)
        try from.storage(service: "s").store(token: "fake", for: "k", policy: .whenUnlocked)
        let path = sandbox.path.appending("tokens.export")
        _ = try from.export(to: path, passphrase: Self.passphrase)
        let directory = try PosixDirectory(sandbox.path)
        let whole = try directory.open("tokens.export", .read).read(1 << 20, at: 0)
        let front = ExportHeader.length
        // Imports the changed bytes and returns the error.
        var tried = 0
        func verdict(_ bytes: [UInt8]) throws -> TokenStorageError.Code? {
            tried += 1
            let name = "changed-\(tried)"
            let file = try directory.open(name, .create)
            try file.write(bytes, at: 0)
            defer { try? directory.remove(name) }
            do throws(TokenStorageError) {
                try ExportReader(file, passphrase: Self.passphrase).readItems { _ in }
                return nil
            } catch {
                return error.code
            }
        }
        #expect(try verdict(whole) == nil)
        for bit in stride(from: 0, to: front * 8, by: 41) {
            var bytes = whole
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            let code = try verdict(bytes)
            #expect(
                code == .corrupt || code == .wrongPassphrase || code == .unsupportedFormat, "bit \(bit)")
        }
        for bit in stride(from: front * 8, to: whole.count * 8, by: 97) {
            var bytes = whole
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(try verdict(bytes) == .corrupt, "bit \(bit)")
        }
        for length in [0, 8, front - 1, front, front + 3, front + 4, whole.count - 1] {
            #expect(try verdict(Array(whole.prefix(length))) == .corrupt, "\(length) bytes")
        }
        #expect(try verdict(whole + [0]) == .corrupt)
        // The second message comes first, then only the last message is left.
        let first = 4 + Int(whole[front]) + Int(whole[front + 1]) << 8
        let messages = Array(whole[front...])
        #expect(
            try verdict(Array(whole[..<front]) + messages[first...] + messages[..<first]) == .corrupt)
        #expect(try verdict(Array(whole[..<front]) + messages[first...]) == .corrupt)
    }

    @Test func anotherPassphraseIsTold() throws {
        let sandbox = try Sandbox()
        let from = try vault(sandbox)
        try fill(from)
        let path = sandbox.path.appending("tokens.export")
        _ = try from.export(to: path, passphrase: Self.passphrase)
        let to = try vault(sandbox, "to.vault")
        let error = try #require(throws: TokenStorageError.self) {
            try to.importItems(from: path, passphrase: Secret(utf8: "other words"))
        }
        #expect(error.code == .wrongPassphrase)
        #expect(try to.listAllServices().items.isEmpty)
        let absent = try #require(throws: TokenStorageError.self) {
            try to.importItems(from: sandbox.path.appending("nowhere"), passphrase: Self.passphrase)
        }
        #expect(absent.code == .unavailable)
    }

    /// More items than one commit takes.
    @Test func thousandsOfItemsArrive() throws {
        let sandbox = try Sandbox()
        let from = try vault(sandbox)
        let storage = from.storage(service: "many")
        try storage.commit(
            (0..<2_500).map { index in
                .store(
                    Secret(utf8: "fake \(index)"), for: TokenKey("key \(index)"),
                    details: TokenDetails(policy: .whenUnlocked))
            })
        let path = sandbox.path.appending("many.export")
        #expect(try from.export(to: path, passphrase: Self.passphrase).items == 2_500)
        let to = try vault(sandbox, "to.vault")
        var told: [Int] = []
        let report = try to.importItems(from: path, passphrase: Self.passphrase) { done, total in
            #expect(total == 2_500)
            told.append(done)
        }
        #expect(report.added == 2_500)
        #expect(told.last == 2_500 && told == told.sorted())
        #expect(try to.storage(service: "many").list().items.count == 2_500)
    }

    // MARK: - Beside writers

    @Test func anItemThatIsRenamedMeanwhileIsInIt() throws {
        let sandbox = try Sandbox()
        let from = try vault(sandbox)
        defer { from.close() }
        let storage = from.storage(service: "s")
        try storage.store(token: "fake-a", for: "a", policy: .whenUnlocked)
        try storage.store(token: "fake-b", for: "b", policy: .whenUnlocked)
        let file = sandbox.path.appending("out.export")
        var isRenamed = false
        let report = try from.export(to: file, passphrase: Self.passphrase) { _, _ in
            if !isRenamed { isRenamed = (try? storage.commit([.rename("a", to: "c")])) != nil }
        }
        #expect(isRenamed && report.items == 2)
        let to = try vault(sandbox, "to.vault")
        defer { to.close() }
        _ = try to.importItems(from: file, passphrase: Self.passphrase)
        let copied = to.storage(service: "s")
        #expect(try copied.retrieve(for: "b") == "fake-b")
        #expect(try copied.retrieve(for: "c") == "fake-a")
    }

    @Test func allOrNothingHoldsWhenAnItemIsBoundToTheDeviceMeanwhile() throws {
        let sandbox = try Sandbox()
        let from = try vault(sandbox)
        defer { from.close() }
        let storage = from.storage(service: "s")
        try storage.store(token: "fake-a", for: "a", policy: .whenUnlocked)
        let file = sandbox.path.appending("out.export")
        var isBound = false
        let error = #expect(throws: TokenStorageError.self) {
            _ = try from.export(to: file, passphrase: Self.passphrase, allOrNothing: true) { _, _ in
                let bound = try? storage.store(token: "fake-a", for: "a", policy: .whenUnlockedThisDeviceOnly)
                if bound != nil { isBound = true }
            }
        }
        #expect(isBound)
        #expect(error?.code == .wrongDevice)
        #expect(try !SmallFile.exists(file))
    }
}
