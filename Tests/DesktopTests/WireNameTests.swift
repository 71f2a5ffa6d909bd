import TestLanes
import Testing
import TokenVault

@testable import TokenVaultDesktop

/// Names as the keyring has them.
@Suite(.tags(.desktop), .from(.usual)) struct WireNameTests {
    @Test(arguments: [
        "", "a", "é", "a b", " ", "a\\b", "\n", "a\nb", "\u{0}", "\u{7f}", "\u{9f}", "tokenvault:base64:",
        "tokenvault:base64:YQ==", "tokenvault:", "tokenvault:base64", String(repeating: "\n", count: 1_024),
    ])
    func everyNameComesBack(_ name: String) {
        let written = WireName.encode(name)
        #expect(!written.isEmpty && !NameRules.hasControlCharacters(written))
        #expect(WireName.decode(written).map { Array($0.utf8) } == Array(name.utf8))
    }

    @Test func whatAPersonLooksForStays() {
        for name in ["access_token", "com.example.app", "DOMAIN\\user", "é", "a b"] {
            #expect(WireName.encode(name) == name)
        }
    }

    /// One way to write a name: two items cannot have one name.
    @Test(arguments: [
        "tokenvault:base64:YQ==", "tokenvault:base64:?", "tokenvault:base64:/w==", "tokenvault:base64:Cg",
    ])
    func whatIsNotWrittenIsNotRead(_ written: String) {
        #expect(WireName.decode(written) == nil && WireName.name(in: written) == nil)
    }

    /// A name of another program that ours would be written for in another way: it could not be found again.
    @Test(arguments: ["", "a\nb", "\u{7f}"]) func namesOfOthersAreNotTakenForOurs(_ written: String) {
        #expect(WireName.name(in: written) == nil)
    }
}
