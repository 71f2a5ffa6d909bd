import SystemPackage
import Testing
import TokenVault
import TokenVaultCrypto
import TokenVaultPlatform

@testable import TokenVaultFile

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What takes long by itself ends when the time is over, before it has begun where it cannot be interrupted.
@Suite struct DeadlineTests {
    private let sandbox: Sandbox
    private let words = Secret(utf8: "fake words")

    init() throws { sandbox = try Sandbox() }

    /// The vault, unlocked, for calls that are to end `duration` from now.
    private func opened(_ duration: Duration) throws -> BlockingFileVault {
        var configuration = sandbox.configuration
        configuration.keyDerivationCost = .minimum
        configuration.deadline = Deadline(after: duration)
        let vault = try BlockingFileVault.open(at: sandbox.vault, configuration: configuration)
        try vault.unlock(with: keyFile)
        return vault
    }

    private func item(_ number: Int) -> TokenItem {
        TokenItem(
            metadata: TokenMetadata(
                key: TokenKey("key \(number)"), service: "s", policy: .whenUnlocked,
                created: .init(timeIntervalSince1970: 0),
                modified: .init(timeIntervalSince1970: 0), generation: Generation(rawValue: 0)),
            secret: Secret(utf8: "fake \(number)"))
    }

    @Test func anImportOrExportThatIsTooLateDoesNothing() throws {
        try sandbox.made([:]).close()
        let late = try opened(.zero)
        let failed = failure { _ = try late.importItems((0..<200).map(item)) }
        #expect(failed?.code == .timedOut, "\(failed)")
        #expect(try values(in: try sandbox.opened()) == [:])
        _ = try opened(.seconds(600)).importItems((0..<200).map(item))
        let export = sandbox.path.appending("out")
        #expect(failure { _ = try late.export(to: export, passphrase: words) }?.code == .timedOut)
        #expect(try !SmallFile.exists(export))
        #expect(try opened(.seconds(600)).export(to: export, passphrase: words).items == 200)
        #expect(failure { _ = try late.importItems(from: export, passphrase: words) }?.code == .timedOut)
    }

    /// Its cost is the file's choice, and it is not authentic before the key is derived.
    @Test func anExportCannotTakeMoreTimeThanThereIs() throws {
        try sandbox.made([:]).close()
        let export = sandbox.path.appending("out")
        _ = try opened(.seconds(600)).export(to: export, passphrase: words)
        let bytes = try SmallFile.read(export, limit: 1 << 20).bytes
        var header = try ExportHeader(decoding: Array(bytes.prefix(ExportHeader.length)))
        header.cost = .maximum
        let hostile = sandbox.path.appending("hostile")
        try SmallFile.create(hostile, header.encoded() + bytes.dropFirst(ExportHeader.length))
        let vault = try opened(.seconds(3))
        let failed = failure { _ = try vault.importItems(from: hostile, passphrase: words) }
        #expect(failed?.code == .timedOut, "\(failed)")
        #expect(failed?.underlying?.hasPrefix("deriving the passphrase's key takes") == true, "\(failed)")
    }

    @Test func aPassphraseThatTakesTooLongIsNotTried() throws {
        let vault = try sandbox.made()
        vault.close()
        let slot = try opened(.seconds(600)).addSlot(.passphrase(words))
        var configuration = sandbox.configuration
        configuration.keyDerivationCost = .minimum
        configuration.deadline = Deadline(after: Duration.zero)
        let late = try BlockingFileVault.open(at: sandbox.vault, configuration: configuration)
        #expect(failure { try late.unlock(with: .passphrase(words)) }?.code == .timedOut)
        let copy = try VaultCopy.open(at: sandbox.vault, configuration: configuration)
        #expect(failure { try copy.unlock(with: .passphrase(words)) }?.code == .timedOut)
        // A key file needs no derivation, so it works after the deadline.
        try late.unlock(with: keyFile)
        #expect(failure { _ = try late.addSlot(.passphrase(Secret(utf8: "other"))) }?.code != nil)
        #expect(try late.slots().map(\.id) == [1, slot.id])
        let other = failure {
            _ = try BlockingFileVault.create(
                at: sandbox.path.appending("other.vault"), unlockMethod: .passphrase(words),
                configuration: configuration)
        }
        #expect(other?.code == .timedOut)
        #expect(try !SmallFile.exists(sandbox.path.appending("other.vault")))
    }

    @Test func theTimeGrowsWithTheCost() {
        let (least, most) = (
            PasswordHash.leastTime(for: .minimum), PasswordHash.leastTime(for: .maximum)
        )
        #expect(least > .milliseconds(5) && least < .seconds(60), "\(least)")
        #expect(abs(most / least - 128) < 0.01)
    }
}
