@_spi(_Unicode) import Swift
import Testing

@testable import TokenVaultCrypto

/// Passphrases as RFC 8265 writes them.
@Suite struct OpaqueStringTests {
    private func normalized(_ text: String) -> String? {
        SecretBytes(copying: text.utf8).asOpaqueString().map { String(decoding: $0.array(), as: UTF8.self) }
    }

    /// Of Unicode Standard Annex 15, figures 3 to 6, and RFC 8265, section 4.3; `nil` where nothing changes.
    @Test(arguments: [
        ("plain words", nil), ("", nil), ("caf\u{e9}", nil), ("cafe\u{301}", "caf\u{e9}"),
        ("\u{212b}", "\u{c5}"), ("A\u{30a}", "\u{c5}"), ("\u{2126}", "\u{3a9}"),
        ("\u{1e9b}\u{323}", "\u{1e9b}\u{323}"), ("q\u{307}\u{323}", "q\u{323}\u{307}"),
        ("d\u{307}\u{323}", "\u{1e0d}\u{307}"), ("\u{1e0b}\u{323}", "\u{1e0d}\u{307}"),
        // Compatibility characters stay. Characters that are excluded from composition are decomposed.
        ("\u{fb01}2\u{2075}", nil), ("\u{958}", "\u{915}\u{93c}"),
        // Hangul, composed from letters and from a syllable without its final.
        ("\u{1112}\u{1161}\u{11ab}", "\u{d55c}"), ("\u{d558}\u{11ab}", "\u{d55c}"),
        // Indic vowels that combine with the preceding character.
        ("\u{9c7}\u{9be}", "\u{9cb}"), ("\u{1100}\u{1161}x\u{300}", "\u{ac00}x\u{300}"),
        ("a\u{3000}b\u{a0}c\u{2003}", "a b c "), ("Correct Horse Battery Staple", nil),
        ("\u{1f600}\u{fe0f}\u{200d}", nil), ("\u{301}", nil), ("\u{344}", "\u{308}\u{301}"),
    ])
    func isAsPublished(_ given: String, _ expected: String?) {
        let isSame = expected.map { $0.utf8.elementsEqual(given.utf8) } ?? true
        let found = normalized(given)
        #expect(isSame ? found == nil : found.map { Array($0.utf8) } == expected.map { Array($0.utf8) })
    }

    @Test(
        arguments: [[0xff], [0x61, 0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0x65, 0xcc, 0x81, 0x80]]
            as [[UInt8]])
    func whatIsNoTextStays(_ bytes: [UInt8]) {
        #expect(SecretBytes(copying: bytes).asOpaqueString() == nil)
    }

    /// A text that is normalized a piece at a time is the text normalized at once.
    @Test func piecesMakeTheWhole() {
        var random = SystemRandomNumberGenerator()
        let blocks: [ClosedRange<UInt32>] = [
            0x41...0x7a, 0xc0...0x24f, 0x300...0x36f, 0x370...0x3ff, 0x591...0x5f4, 0x900...0xdff,
            0x1100...0x11ff, 0x1b00...0x1b4c, 0x1e00...0x1fff, 0x3041...0x30ff, 0xac00...0xac80,
            0xd7b0...0xd7ff, 0x11099...0x110ba, 0x11347...0x1134c, 0x16d40...0x16d7f, 0x1d15e...0x1d169,
        ]
        for _ in 0..<20_000 {
            var scalars = String.UnicodeScalarView()
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                let block = blocks[Int.random(in: 0..<blocks.count, using: &random)]
                guard let scalar = Unicode.Scalar(UInt32.random(in: block, using: &random)),
                    scalar.properties.generalCategory != .spaceSeparator
                else { continue }
                scalars.append(scalar)
            }
            let given = String(scalars)
            var whole = String.UnicodeScalarView()
            for scalar in given._nfc { whole.append(scalar) }
            let found = normalized(given) ?? given
            #expect(found.unicodeScalars.elementsEqual(whole), "\(given.unicodeScalars.map(\.value))")
        }
    }

    /// The longest that a text can get.
    @Test func thereIsRoomForTheLongestText() {
        let given = String(repeating: "\u{1d160}", count: 1_000)
        #expect(normalized(given)?.unicodeScalars.count == 3_000)
        #expect(normalized(String(repeating: "\u{fb2c}", count: 1_000))?.utf8.count == 6_000)
    }
}
