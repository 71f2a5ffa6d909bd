import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// A copy is verified as the vault is, whether it would open as the vault or not.
@Suite(.timeLimit(.minutes(20))) struct CopyVerificationTests {
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox() }

    @Test func whatIsWholeIsClean() throws {
        let vault = try sandbox.made()
        try sandbox.keepCopy(as: "same")
        let report = try sandbox.copy("same").verify()
        #expect(report.isClean && report.items == 2 && !report.isOlderThanSeen)
        #expect(try report.frames == vault.verify().frames)
        let locked = try VaultCopy.open(at: sandbox.path(of: "same"), configuration: sandbox.configuration)
        #expect(failure { _ = try locked.verify() }?.code == .locked)
    }

    @Test func whatIsOldAndWhatIsDamagedAreToldApart() throws {
        let vault = try sandbox.made()
        try sandbox.keepCopy(as: "old")
        try vault.storage(service: "s").store(token: "second", for: "a")
        let old = try sandbox.copy("old").verify()
        #expect(old.isClean && old.isOlderThanSeen)
        // Without a record of what this device has seen, the age is unknown.
        let unknowing = try VaultCopy.open(
            at: sandbox.path(of: "old"), configuration: FileVaultConfiguration(stateDirectory: nil))
        try unknowing.unlock(with: keyFile)
        #expect(try !unknowing.verify().isOlderThanSeen)
        // Damages the last record and the one before it, first in the same epoch and then after a compaction.
        let whole = try sandbox.bytes(of: "old")
        let frames = whole.indices.dropLast(4).filter { whole[$0..<$0 + 4].elementsEqual("TVF1".utf8) }
        for isCompacted in [false, true] {
            if isCompacted { _ = try vault.compact() }
            for frame in frames.suffix(2) {
                var bytes = whole
                bytes[frame + Frame.contentOffset + 10] ^= 1
                try sandbox.write(bytes, to: "old")
                let both = try sandbox.copy("old").verify()
                #expect(both.isOlderThanSeen && !both.isClean, "\(both)")
            }
        }
        // A damaged newest record may be the record that was there.
        let newest = try sandbox.bytes()
        let last = try #require(
            newest.indices.dropLast(4).last { newest[$0..<$0 + 4].elementsEqual("TVF1".utf8) })
        var bytes = newest
        bytes[last + 20] ^= 1
        try sandbox.write(bytes, to: "newest")
        let damaged = try sandbox.copy("newest").verify()
        #expect(!damaged.isOlderThanSeen && !damaged.isClean, "\(damaged)")
    }
}
