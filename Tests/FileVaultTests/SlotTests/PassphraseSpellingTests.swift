import SystemPackage
import Testing
import TokenVault

/// One passphrase, typed on systems that spell it in different ways. The vector `passphrase-raw` is a slot of raw bytes.
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
        try vault.storage(service: "s").store(token: "fake", for: "k", policy: .whenUnlocked)
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
            #expect(report.unchanged == 1)
        }
        try vault.changePassphrase(
            from: Secret(utf8: Self.spellings[1]), to: Secret(utf8: "ne\u{301}w"))
        #expect(try opened("n\u{e9}w").storage(service: "s").retrieve(for: "k") == "fake")
    }
}
