import TestLanes
import Testing

/// Passphrase files as editors write them.
@Suite(.tags(.programs), .from(.usual)) struct PassphraseFileTests {
    @Test func aCarriageReturnBelongsToTheEndOfTheLine() throws {
        let sandbox = try Sandbox()
        let unix = try sandbox.file("unix", "fake correct horse\n")
        let windows = try sandbox.file("windows", "fake correct horse\r\nfake second line\r\n")
        try #require(try sandbox.run("init", "--passphrase-file", windows).status == 0)
        #expect(try sandbox.run("list", "--passphrase-file", unix).status == 0)
        // Blanks belong to a passphrase. The error for a wrong passphrase points them out.
        let padded = try sandbox.file("padded", "fake correct horse \r\n")
        let refused = try sandbox.run("list", "--passphrase-file", padded)
        expectOneLine(refused, status: 5, hiding: ["horse"])
        #expect(refused.error.contains("begins or ends with a blank"))
    }

    /// A vault whose passphrase was read with its carriage return before.
    @Test func aVaultWithACarriageReturnInItsPassphraseStillOpens() throws {
        let sandbox = try Sandbox()
        let two = try sandbox.file("two", "fake\r\r\n")
        let one = try sandbox.file("one", "fake\r\n")
        try #require(try sandbox.run("init", "--passphrase-file", two).status == 0)
        #expect(try sandbox.run("list", "--passphrase-file", one).status == 0)
    }

    @Test(
        arguments: [
            (Array("\u{feff}fake\n".utf8), "byte order mark"), (Array("f\0a\0k\0e\0\n\0".utf8), "UTF-16"),
            (Array("\0f\0a\0k\0e\0\n".utf8), "UTF-16"),
            ([0xff, 0xfe] + Array("f\0a\0k\0e\0\n\0".utf8), "UTF-16"),
            ([0xfe, 0xff] + Array("\0f\0a\0k\0e\0\n".utf8), "UTF-16"),
            // Characters without a zero byte.
            ([0xff, 0xfe, 0x41, 0x4e, 0x42, 0x4e], "UTF-16"),
            ([0xfe, 0xff, 0x4e, 0x41, 0x4e, 0x42], "UTF-16"),
        ] as [([UInt8], String)])
    func anotherEncodingIsRefused(_ text: [UInt8], _ reason: String) throws {
        let sandbox = try Sandbox()
        let words = "\(sandbox.home)/words"
        let written = try Child.run(
            program: "/usr/bin/tee", [Array(words.utf8)], environment: [:], input: .bytes(text))
        try #require(written.status == 0)
        let refused = try sandbox.run("init", "--passphrase-file", words)
        #expect(refused.status == 1)
        #expect(refused.error.contains(reason) && refused.error.contains("save the file as UTF-8"))
        #expect(!refused.error.contains("fake"))
        #expect(try sandbox.run("status", "--json").text.contains(#""state":"absent""#))
    }
}
