import TestLanes
import Testing
import TokenVault
import TokenVaultCrypto

@testable import TokenVaultDesktop

/// How an item is written in the keyring, without one.
@Suite(.tags(.desktop), .from(.usual)) struct FormTests {
    @Test(
        arguments: [
            nil, "label", " ", "a (generation 5)", "(generation 5)", " (generation 5)",
            "x (unlabelled, generation 7)",
            "x (generation 5, written 6)", "caf\u{e9}", "cafe\u{301}", ")", "(", "5)",
        ] as [String?])
    func labelsComeBackByteForByte(_ label: String?) {
        for key in ["key", "key (generation 9)", " (unlabelled, generation 9)"] as [TokenKey] {
            for delay in [0, 1, 2, 600] as [UInt64] {
                let generation: Generation = 1_763_723_456_789_012
                let seconds = generation.rawValue / 1_000_000 + delay
                let written = ItemLabel.write(metadata(key, label, generation), at: seconds)
                let read = ItemLabel(reading: written, changed: seconds)
                #expect(read.text.map { Array($0.utf8) } == label.map { Array($0.utf8) }, "\(written)")
                #expect(read.generation == generation, "\(written)")
                // A later change comes from another program.
                let edited = ItemLabel(reading: written, changed: seconds + 3)
                #expect(edited.generation.rawValue / 1_000_000 == seconds + 3, "\(written)")
            }
        }
    }

    /// The clock was set back by some hours since the generation was made.
    @Test func anEditIsNoticedAlsoWhenTheGenerationIsAheadOfTheClock() {
        let now: UInt64 = 1_763_723_456
        let ahead = Generation(rawValue: (now + 7_200) * 1_000_000)
        let written = ItemLabel.write(metadata("key", "label", ahead), at: now)
        var last = ItemLabel(reading: written, changed: now).generation
        #expect(last == ahead)
        for seconds in [2, 3, 60] as [UInt64] {
            let edited = ItemLabel(reading: written, changed: now + seconds)
            #expect(edited.text == "label" && edited.generation > last)
            last = edited.generation
        }
    }

    @Test(arguments: [
        "", "label", "x (generation )", "x (generation 99999999999999999999)", "x (generation 5",
    ])
    func aLabelOfAnotherProgramIsItsLabel(_ label: String) {
        let read = ItemLabel(reading: label, changed: 1_763_723_456)
        #expect(read.text == (label.isEmpty ? nil : label))
        #expect(read.generation == 1_763_723_456_999_999)
    }

    @Test(arguments: [
        "x (generation 9007199254740991)", "x", "x (generation 4503599627370495)",
        "x (generation 1, written 18446744073709551615)", "x (generation 1, written 4503599627)",
        "x (generation 18446744073709551615, written 1)",
        "x (generation 4503599627370495, written 4503599627)",
    ])
    func noLabelMakesAGenerationThatNoClockMakes(_ label: String) {
        for seconds in [0, 1, 1_763_723_456, 1 << 32, .max - 86_400, .max] as [UInt64] {
            let read = ItemLabel(reading: label, changed: seconds)
            #expect(read.generation.rawValue < 1 << 52)
            if seconds < 1 << 32 { #expect(read.generation.rawValue / 1_000_000 <= seconds + 86_401) }
        }
    }

    // RFC 4648, section 10
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func base64IsThatOfItsVectors(_ plain: String, _ encoded: String) {
        #expect(Base64.encode(SecretBytes(copying: plain.utf8)).array() == Array(encoded.utf8))
        #expect(Base64.decode(SecretBytes(copying: encoded.utf8))?.array() == Array(plain.utf8))
    }

    @Test(arguments: ["Z", "Zg=", "Zg", "Zm9v\n", "Zm=v", "====", "Zm9v Zg=", "Zm9-"])
    func whatIsNotBase64IsRefused(_ text: String) {
        #expect(Base64.decode(SecretBytes(copying: text.utf8)) == nil)
    }

    @Test func everySecretComesBackInItsEncoding() {
        for count in 0..<70 {
            let secret = Secret((0..<count).map { UInt8(truncatingIfNeeded: $0 * 37) })
            let encoding = WireEncoding(for: secret)
            #expect(encoding.decode(encoding.encode(secret)) == secret)
        }
        #expect(WireEncoding(for: Secret(utf8: "eyJhbGciOiJub25lIn0.e30.")) == .text)
        #expect(WireEncoding(for: Secret(utf8: "{\"json\": [1, 2]}")) == .text)
        for text in ["\n", "a\\b", " a", "a ", "\u{7f}", "\t"] {
            #expect(WireEncoding(for: Secret(utf8: text)) == .base64)
        }
    }

    @Test func attributesOfCallersNeverStandForOurs() {
        let metadata = TokenMetadata(
            key: "key", service: "app", policy: .whenUnlocked,
            attributes: [
                "service": "theirs", "account": "theirs", "xdg:schema": "theirs", "gkr:compat": "theirs",
                "tokenvault:created": "theirs", "tokenvault:attribute:x": "theirs", "plain": "theirs",
            ], created: Microseconds.date(5), modified: Microseconds.date(5), generation: 5)
        let attributes = KeyringItem.attributes(of: metadata, encoding: .text)
        #expect(attributes["service"] == "app" && attributes["account"] == "key")
        #expect(attributes["xdg:schema"] == KeyringItem.schema && attributes["plain"] == "theirs")
        #expect(attributes["tokenvault:created"] == "5")
        #expect(attributes.filter { $0.value == "theirs" }.count == metadata.attributes.count)
    }

    @Test func aCommitIsReadAsItWasWrittenAndNotWhenCut() throws {
        var intent = CommitIntent(service: "app", generation: 7)
        let item = TokenItem(
            metadata: TokenMetadata(
                key: "key", service: "app", policy: .whenUnlocked, label: "label", attributes: ["a": "b"],
                created: Microseconds.date(3), modified: Microseconds.date(7),
                expires: Microseconds.date(9), generation: 7), secret: Secret([0, 1, 2]))
        intent.outcomes = [("key", .stored(item)), ("gone", .deleted)]
        let bytes = intent.encode()
        let read = try CommitIntent(decoding: bytes)
        #expect(read["key"]?.item == item)
        #expect(read["gone"] != nil && read["gone"]?.item == nil)
        #expect(read["other"] == nil)
        for count in 0..<bytes.count {
            let cut = SecretBytes(copying: bytes.array().prefix(count))
            #expect(throws: FormatError.self) { try CommitIntent(decoding: cut) }
        }
    }

    private func metadata(_ key: TokenKey, _ label: String?, _ generation: Generation) -> TokenMetadata {
        let date = Microseconds.date(generation.rawValue)
        return TokenMetadata(
            key: key, service: "app", policy: .whenUnlocked, label: label, created: date, modified: date,
            generation: generation)
    }
}
