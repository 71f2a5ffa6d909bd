import SystemPackage
import Testing
import TokenVaultCrypto
import TokenVaultPlatform

@testable import TokenVault

/// One passphrase, typed on systems that spell it in different ways.
@Suite struct PassphraseSpellingTests {
    private let sandbox: Sandbox
    /// Composed, as most keyboards send it, and taken apart, as Apple's file names and some input methods have it.
    private static let spellings = [
        "na\u{ef}ve caf\u{e9}", "nai\u{308}ve cafe\u{301}", "na\u{ef}ve\u{a0}cafe\u{301}",
    ]

    init() throws { sandbox = try Sandbox() }

    private func opened(_ passphrase: String) throws -> BlockingFileVault {
        let vault = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try vault.unlock(with: .passphrase(Secret(utf8: passphrase)))
        return vault
    }

    @Test(arguments: spellings) func everySpellingOpensTheVault(made spelling: String) throws {
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: .passphrase(Secret(utf8: spelling)),
            configuration: sandbox.configuration)
        try vault.storage(service: "s").store(token: "fake", for: "k")
        for other in Self.spellings {
            #expect(try opened(other).storage(service: "s").retrieve(for: "k") == "fake")
        }
        let failure = #expect(throws: TokenStorageError.self) { try opened("naive cafe") }
        #expect(failure?.code == .wrongPassphrase)
        let export = sandbox.path.appending("copy.export")
        _ = try vault.export(to: export, passphrase: Secret(utf8: spelling))
        for other in Self.spellings {
            let report = try vault.importItems(
                from: export, passphrase: Secret(utf8: other), onConflict: .skip)
            #expect(report.unchanged + report.skipped + report.added == 0)
        }
        try vault.changePassphrase(
            from: Secret(utf8: Self.spellings[1]), to: Secret(utf8: "ne\u{301}w"))
        #expect(try opened("n\u{e9}w").storage(service: "s").retrieve(for: "k") == "fake")
    }

    /// A slot of the bytes as they were typed, which another program made.
    @Test func aSlotOfRawBytesOpensToo() throws {
        let raw = Secret(utf8: Self.spellings[1])
        let cost = PasswordHashCost(passes: 1, memory: 8_192)
        let salt = [UInt8](repeating: 7, count: PasswordHash.saltLength)
        let typed = try KeybagKeys.passphraseKey(raw, salt: salt, cost: cost)
        let tried = try raw.spellings.map { try KeybagKeys.passphraseKey($0, salt: salt, cost: cost) }
        let commitments = ([typed] + tried).map { Hash.keyed([1], key: $0, length: 32) }
        #expect(commitments[1] != commitments[0] && commitments[2] == commitments[0])
    }
}
