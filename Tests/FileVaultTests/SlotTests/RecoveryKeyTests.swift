import SystemPackage
import Testing
import TokenVault
import TokenVaultCrypto

@testable import TokenVaultFile

/// Recovery keys: their text, the mistakes that people make with it, and what they open.
@Suite struct RecoveryKeyTests {
    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ")

    private static func text(_ key: RecoveryKey) -> String { key.text.unprotectedText() ?? "" }

    private func numbers(_ text: String) -> [Int]? {
        if case .mistyped(let groups) = RecoveryKey.read(Secret(utf8: text)) { groups } else { nil }
    }

    private func isKey(_ text: String, _ key: RecoveryKey) -> Bool {
        if case .key(let read) = RecoveryKey.read(Secret(utf8: text)) { read.text == key.text } else { false }
    }

    @Test func theTextIsEasyToType() {
        for _ in 0..<50 {
            let key = RecoveryKey()
            let text = Self.text(key)
            #expect(text.wholeMatch(of: #/([0-9A-HJKMNP-TV-Z]{5}-){7}[0-9A-HJKMNP-TV-Z]{5}/#) != nil)
            #expect(isKey(text, key))
            #expect(isKey(text.lowercased(), key))
            #expect(isKey(text.replacing("-", with: ""), key))
            #expect(isKey("  " + text.replacing("-", with: " - ") + "\t", key))
            #expect(isKey(text.replacing("1", with: "I").replacing("0", with: "o"), key))
            #expect(isKey(text.replacing("1", with: "l"), key))
        }
        #expect(Self.text(RecoveryKey()) != Self.text(RecoveryKey()))
        #expect(throws: TokenStorageError.self) { try RecoveryKey(Secret(utf8: "a passphrase")) }
    }

    /// Known answers, computed by hand from the words of Format.md.
    @Test func theChecksAreAsTheFormatSays() {
        // All bits are zero: the check of group g is g times x⁴.
        #expect(numbers("0000G-00005-0000N-0000A-0000T-0000F-0000Z-00000") != nil)
        var text: [String] = []
        for group in 1...8 {
            var check = group
            for _ in 0..<4 {
                check *= 2
                if check > 31 { check ^= 37 }
            }
            text.append("0000\(Self.alphabet[check])")
        }
        guard case .key(let zero) = RecoveryKey.read(Secret(utf8: text.joined(separator: "-"))) else {
            Issue.record("not read")
            return
        }
        #expect(zero.bytes.array() == [UInt8](repeating: 0, count: 20))
    }

    @Test func everyMistypedCharacterIsFoundInItsGroup() {
        let text = Array(Self.text(RecoveryKey()))
        for place in text.indices where text[place] != "-" {
            for other in Self.alphabet + ["U", "!"] where other != text[place] {
                var wrong = text
                wrong[place] = other
                #expect(numbers(String(wrong)) == [place / 6 + 1], "\(place) \(other)")
            }
        }
    }

    @Test func exchangedCharactersAndGroupsAreFound() {
        let text = Array(Self.text(RecoveryKey()))
        for first in text.indices {
            for second in first + 1..<min(first + 5, text.count)
            where first / 6 == second / 6 && text[first] != "-" && text[second] != "-"
                && text[first] != text[second]
            {
                var wrong = text
                wrong.swapAt(first, second)
                #expect(numbers(String(wrong)) == [first / 6 + 1])
            }
        }
        var groups = String(text).split(separator: "-")
        groups.swapAt(1, 4)
        #expect(numbers(groups.joined(separator: "-")) == [2, 5])
        groups.swapAt(1, 4)
        groups[6].removeLast()
        #expect(numbers(groups.joined(separator: "-")) == [7])
    }

    @Test(arguments: [
        "", "correct horse battery staple", "apple berry cedar delta eagle fable grape honey",
        String(repeating: "0", count: 40), String(repeating: "x", count: 5_000), "1-2-3-4-5-6-7-8",
    ])
    func aPassphraseIsNone(_ text: String) {
        if case .somethingElse = RecoveryKey.read(Secret(utf8: text)) { return }
        Issue.record("taken for a recovery key: \(text.prefix(40))")
    }

    @Test func itOpensWhatAKeyFileOpens() throws {
        let sandbox = try Sandbox()
        let words = UnlockMethod.passphrase(Secret(utf8: "not a real passphrase"))
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: words, configuration: sandbox.configuration)
        let storage = vault.storage(service: "s")
        for policy in AccessPolicy.allCases {
            try storage.store(token: "fake", for: TokenKey(policy.rawValue), policy: policy)
        }
        let key = RecoveryKey()
        let slot = try vault.addSlot(.recoveryKey(key))
        #expect(slot.kind == .recovery && slot.scope == .all && slot.kind.isAttended)
        vault.close()

        // The key is given as itself, and as text typed at a passphrase prompt.
        for method in [UnlockMethod.recoveryKey(key), .passphrase(key.text)] {
            let again = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
            try again.unlock(with: method)
            #expect(try again.status().unlockedBy == slot)
            let listing = try again.storage(service: "s").list()
            #expect(listing.items.count == 4 && listing.hiddenReasons == [.notPermitted: 1])
        }
        // A typing mistake is reported before any derivation: a derivation at this cost takes a fifth of a
        // second. The answer is the same when the passphrase's slot is damaged so that it cannot be derived
        // at all.
        let again = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        var wrong = Array(Self.text(key))
        wrong[12] = wrong[12] == "7" ? "8" : "7"
        let error = #expect(throws: TokenStorageError.self) {
            try again.unlock(with: .passphrase(Secret(utf8: String(wrong))))
        }
        #expect(error?.code == .wrongPassphrase)
        #expect(error?.underlying == "group 3 of the recovery key is mistyped")
        let other = #expect(throws: TokenStorageError.self) {
            try again.unlock(with: .recoveryKey(RecoveryKey()))
        }
        #expect(other?.code == .wrongPassphrase && other?.underlying == nil)
    }

    @Test func aForgottenPassphraseIsReplaced() throws {
        let sandbox = try Sandbox()
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: .passphrase(Secret(utf8: "forgotten")),
            configuration: sandbox.configuration)
        let key = RecoveryKey()
        _ = try vault.addSlot(.recoveryKey(key))
        try vault.storage(service: "s").store(token: "fake", for: "k")
        vault.close()
        let again = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try again.unlock(with: .recoveryKey(key))
        let new = UnlockMethod.passphrase(Secret(utf8: "remembered"))
        let refused = #expect(throws: TokenStorageError.self) { try again.addSlot(new) }
        #expect(refused?.code == .notPermitted && refused?.advice?.contains("remove its slot first") == true)
        let changing = #expect(throws: TokenStorageError.self) {
            try again.changePassphrase(from: key.text, to: Secret(utf8: "remembered"))
        }
        #expect(changing?.code == .notPermitted)
        try again.removeSlot(1)
        _ = try again.addSlot(new)
        #expect(try again.storage(service: "s").retrieve(for: "k") == "fake")
    }

    @Test func aVaultIsMadeWithARecoveryKeyAlone() throws {
        let sandbox = try Sandbox()
        let key = RecoveryKey()
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: .recoveryKey(key), configuration: sandbox.configuration)
        // A slot that needs no user comes second and opens less.
        #expect(try vault.addSlot(keyFile).scope == .afterFirstUnlock)
        #expect(try vault.slots().map(\.kind) == [.recovery, .keyFile])
    }
}
