import Testing
import TokenVaultCrypto

/// Base64 in the alphabet of addresses, against RFC 4648 and RFC 7515.
@Suite struct Base64URLTests {
    @Test(arguments: [
        ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE"),
        ("foobar", "Zm9vYmFy"),
    ])
    func theVectorsOfTheStandard(_ text: String, _ encoded: String) {
        #expect(Base64.urlText(Array(text.utf8)) == encoded)
        #expect(Base64.urlDecode(encoded) == Array(text.utf8))
    }

    /// RFC 7515 appendix C.
    @Test func theLettersOfAddresses() {
        #expect(Base64.urlText([3, 236, 255, 224, 193]) == "A-z_4ME")
        #expect(Base64.urlDecode("A-z_4ME") == [3, 236, 255, 224, 193])
    }

    @Test func everyLengthComesBack() {
        for count in 0..<100 {
            let bytes = Random.bytes(count)
            #expect(Base64.urlDecode(Base64.urlText(bytes)) == bytes)
        }
    }

    /// One text stands for some bytes, and no other does.
    @Test(arguments: ["Zg==", "Z", "Zh", "Zm9", "Zm9vYg=", "Zm9v\n", "Zm 9v", "Zm+v", "Zm/v", "\u{e4}A"])
    func otherTextsAreRefused(_ text: String) { #expect(Base64.urlDecode(text) == nil) }
}
