import Testing
import TokenVault

/// Lines of JSON, read without a copy of a secret in a string.
@Suite struct ItemLineTests {
    private func read(_ text: String) throws(ItemLine.Mistake) -> ItemLine {
        let bytes = Array(text.utf8)
        return try ItemLine(bytes, in: 0..<bytes.count, ignoresUnknown: true)
    }

    @Test func anUnknownMemberIsNamedOrCounted() throws {
        let bytes = Array(#"{"key":"k","value":"v","generation":3,"lable":"x","y":{"key":1}}"#.utf8)
        #expect(throws: ItemLine.Mistake.unknownMember("lable")) {
            try ItemLine(bytes, in: 0..<bytes.count)
        }
        #expect(try ItemLine(bytes, in: 0..<bytes.count, ignoresUnknown: true).unknownMembers == 2)
    }

    private func mistake(_ bytes: [UInt8]) -> ItemLine.Mistake? {
        do throws(ItemLine.Mistake) {
            _ = try ItemLine(bytes, in: 0..<bytes.count, ignoresUnknown: true)
        } catch { return error }
        return nil
    }

    @Test func everyMemberIsRead() throws {
        let line = try read(
            #"""
             { "service" : "app","key":"k", "value":"fake","policy":"when-unlocked", "label":"L",
             "attributes":{"a":"1","b":""}, "expires":"2030-01-01T00:00:00Z", "generation": 12, "more":
             [1, -2.5e+3, true, false, null, {"x":[]}, "y"], "created":"2026-01-01T00:00:00Z" }
            """#)
        #expect(line.service == "app" && line.key == "k" && line.policy == "when-unlocked")
        #expect(line.secret == Secret(utf8: "fake") && line.label == "L")
        #expect(line.attributes == ["a": "1", "b": ""] && line.expires == "2030-01-01T00:00:00Z")
    }

    @Test func whatIsMissingOrNullIsAbsent() throws {
        let line = try read(
            #"{"key":"k","value":"","label":null,"service":null,"attributes":null,"valueBase64":null}"#)
        #expect(line.secret.count == 0 && line.label == nil && line.service == nil && line.policy == nil)
        #expect(line.attributes == [:] && line.expires == nil)
    }

    @Test(arguments: [
        (#"a\"b\\c\/d\b\f\n\r\t"#, "a\"b\\c/d\u{8}\u{c}\n\r\t"), (#"\u0041\u00e9\u20AC"#, "Aé€"),
        (#"\ud83d\ude00"#, "😀"), ("é日本😀", "é日本😀"), (#"x\u0000y"#, "x\u{0}y"), (#"\uD834\uDD1E"#, "𝄞"),
    ])
    func escapesAreUndone(_ written: String, _ text: String) throws {
        let line = try read(
            #"{"key":"\#(written)","value":"\#(written)","attributes":{"\#(written)":"\#(written)"}}"#)
        #expect(line.key.utf8.elementsEqual(text.utf8))
        #expect(line.secret == Secret(utf8: text))
        #expect(line.attributes[text] == text)
    }

    @Test func base64IsDecoded() throws {
        #expect(try read(#"{"key":"k","valueBase64":"AP\/+"}"#).secret == Secret([0x00, 0xff, 0xfe]))
        #expect(try read(#"{"key":"k","valueBase64":""}"#).secret.count == 0)
        for text in ["A", "AA", "AA=", "AA==A", "A A=", "AB==", "-_-_", #"AAA\n"#] {
            #expect(mistake(Array(#"{"key":"k","valueBase64":"\#(text)"}"#.utf8)) == .notBase64, "\(text)")
        }
    }

    @Test(arguments: [
        "", "{", "}", "[]", "null", "1", #""k""#, "{}", #"{"key":"k","value":"v"} x"#,
        #"{"key":"k","value":"v"}}"#,
        #"{"key":"k","value":"v",}"#, #"{"key":"k" "value":"v"}"#, #"{key:"k","value":"v"}"#,
        #"{"key":1,"value":"v"}"#, #"{"key":"k","value":1}"#, #"{"key":null,"value":"v"}"#, #"{"value":"v"}"#,
        #"{"key":"k","value":"v","attributes":[]}"#, #"{"key":"k","value":"v","attributes":{"a":1}}"#,
        #"{"key":"k","value":"v","attributes":{"a":"1","a":"2"}}"#, #"{"key":"k","key":"k","value":"v"}"#,
        #"{"key":"k","value":"v","value":"v"}"#, #"{"key":"k","value":"v}"#, #"{"key":"k","value":"\x"}"#,
        #"{"key":"k","value":"\u12"}"#, #"{"key":"k","value":"\u12g4"}"#, #"{"key":"k","value":"\ud83d"}"#,
        #"{"key":"k","value":"\ud83dx"}"#, #"{"key":"k","value":"\ude00"}"#,
        #"{"key":"k","value":"\ud83d\u0041"}"#,
        #"{"key":"k","value":"v","n":01}"#, #"{"key":"k","value":"v","n":1.}"#,
        #"{"key":"k","value":"v","n":.5}"#,
        #"{"key":"k","value":"v","n":1e}"#, #"{"key":"k","value":"v","n":-}"#,
        #"{"key":"k","value":"v","n":+1}"#,
        #"{"key":"k","value":"v","n":nul}"#, #"{"key":"k","value":"v","n":truex}"#,
        #"{"key":"k","value":"v","n":[1,]}"#,
        #"{"key":"k","value":"v","n":}"#, "{\"key\":\"k\",\"value\":\"a\tb\"}",
        "{\"key\":\"k\",\"value\":\"a\nb\"}",
    ])
    func whatIsNoItemIsTold(_ text: String) { #expect(mistake(Array(text.utf8)) == .notAnItem, "\(text)") }

    @Test func oneValueIsNeededAndNotTwo() {
        #expect(mistake(Array(#"{"key":"k"}"#.utf8)) == .notOneValue)
        #expect(mistake(Array(#"{"key":"k","value":"v","valueBase64":"AA=="}"#.utf8)) == .notOneValue)
    }

    @Test func whatIsNotUTF8IsNoItem() {
        for bad in [
            [0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xe2, 0x82], [0xf8, 0x88, 0x80, 0x80, 0x80],
        ] as [[UInt8]] {
            let bytes = Array(#"{"key":"k","value":""#.utf8) + bad + Array(#""}"#.utf8)
            #expect(mistake(bytes) == .notAnItem, "\(bad)")
        }
    }

    @Test func depthIsBounded() throws {
        func nested(_ depth: Int) -> String {
            let lists = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
            return #"{"key":"k","value":"v","deep":"# + lists + "}"
        }
        #expect(throws: Never.self) { try read(nested(60)) }
        #expect(mistake(Array(nested(100).utf8)) == .notAnItem)
        #expect(mistake(Array(nested(1_000_000).utf8)) == .notAnItem)
    }

    /// Every cut and every changed byte is an item or a mistake, and nothing else.
    @Test func noBytesDoHarm() throws {
        let whole = Array(
            #"{"key":"k\u00e9","value":"\ud83d\ude00v\n","attributes":{"a":"1"},"n":[1.5e3,{}],"label":"L"}"#
                .utf8)
        #expect(mistake(whole) == nil)
        for count in 0..<whole.count { #expect(mistake(Array(whole.prefix(count))) != nil) }
        for index in whole.indices {
            for byte in UInt8.min...UInt8.max {
                var changed = whole
                changed[index] = byte
                _ = mistake(changed)
            }
        }
    }

    @Test func onlyTheRangeIsRead() throws {
        let text = #"garbage{"key":"k","value":"v"}garbage"#
        let bytes = Array(text.utf8)
        let line = try ItemLine(bytes, in: 7..<bytes.count - 7)
        #expect(line.key == "k")
        #expect(throws: ItemLine.Mistake.self) { try ItemLine(bytes, in: 7..<bytes.count + 100) }
    }
}
