import SystemPackage
import Testing
import TokenVault
import TokenVaultCrypto
import TokenVaultPlatform

@testable import TokenVaultFile

/// A copy whose vault goes on meanwhile is looked at again, and nothing worse is said of it.
@Suite struct ChangedMeanwhileTests {
    @Test(arguments: [true, false])
    func unlockMethodsThatChangedMeanwhileAreNoWrongOnes(isAdopting: Bool) throws {
        let sandbox = try Sandbox()
        let vault = try sandbox.made()
        defer { vault.close() }
        let copy = try sandbox.copy(nil)
        defer { copy.close() }
        _ = try vault.addSlot(.keyFile(Secret(utf8: "another fake key file, of 32 bytes or more")))
        let error = #expect(throws: TokenStorageError.self) {
            _ = isAdopting ? try copy.adopt() : try copy.restore(to: sandbox.vault)
        }
        #expect(error?.code == .conflict, "\(String(describing: error))")
        // Opened again, the copy has the change.
        let again = try sandbox.copy(nil)
        defer { again.close() }
        _ = isAdopting ? try again.adopt() : try again.restore(to: sandbox.vault)
    }

    @Test func whatACompactionTookThePlaceOfIsNotSalvaged() throws {
        let sandbox = try Sandbox()
        let vault = try sandbox.made()
        defer { vault.close() }
        let copy = try sandbox.copy(nil)
        defer { copy.close() }
        try vault.storage(service: "s").store(token: "newer", for: "a")
        _ = try vault.compact()
        let error = #expect(throws: TokenStorageError.self) {
            _ = try copy.salvage(to: sandbox.path(of: "out"))
        }
        #expect(error?.code == .conflict, "\(String(describing: error))")
        let again = try sandbox.copy(nil)
        defer { again.close() }
        #expect(try again.salvage(to: sandbox.path(of: "out")).isComplete)
    }

    @Test func whatIsLeftOfADeletedValueIsNoted() throws {
        let sandbox = try Sandbox()
        let vault = try sandbox.made(["keep": "kept"])
        defer { vault.close() }
        let storage = vault.storage(service: "s")
        // A file with a second name is not compacted, so the deleted value is overwritten in place.
        try PosixDirectory(sandbox.vault.removingLastComponent()).link(
            sandbox.vault.lastComponent?.string ?? "", to: "second")
        let before = try sandbox.bytes()
        try storage.store(Secret([UInt8](repeating: 0x61, count: 20_000)), for: "large")
        let start = try #require(before.lastIndex { $0 != 0 }) + 1
        _ = try storage.delete(for: "large")
        var bytes = try sandbox.bytes()
        let erased = try #require(
            (start..<bytes.count - 8_192).first { isAllZero(bytes, in: $0..<$0 + 8_192) })
        #expect(try vault.verify().notes.isEmpty)
        bytes[erased + 4_096] = 1
        try sandbox.write(bytes)
        let report = try vault.verify()
        #expect(report.isClean && report.notes.count == 1, "\(report)")
        #expect(report.notes.first?.contains("a deleted value") == true)
    }

    @Test func damageInTheLogIsToldWithItsPlace() throws {
        let sandbox = try Sandbox()
        let vault = try sandbox.made()
        defer { vault.close() }
        var bytes = try sandbox.bytes()
        let second = VaultFormat.logStart + (Frame.length(ofPrefix: bytes, at: VaultFormat.logStart) ?? 0)
        bytes[second + 100] ^= 1
        try sandbox.write(bytes)
        let report = try vault.verify()
        #expect(report.problems.map(\.offset) == [second], "\(report)")
    }
}
