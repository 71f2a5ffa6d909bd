package import TokenVault
internal import TokenVaultPlatform

/// A JSON writer that writes member by member. The member order is part of the contract.
///
/// No copy of a secret stays behind in a string. A command that prints no JSON pays nothing for the writer.
package struct JSONWriter {
    private let output: Output
    private var needsComma = false

    package init(_ output: Output) { self.output = output }

    /// Writes `{ … }`.
    package mutating func object(_ body: (inout JSONWriter) -> Void) { nest("{", "}", body) }

    /// Writes `[ … ]`.
    package mutating func array(_ body: (inout JSONWriter) -> Void) { nest("[", "]", body) }

    /// Writes `"name": { … }`.
    package mutating func object(_ name: String, _ body: (inout JSONWriter) -> Void) {
        key(name)
        object(body)
    }

    /// Writes `"name": [ … ]`.
    package mutating func array(_ name: String, _ body: (inout JSONWriter) -> Void) {
        key(name)
        array(body)
    }

    /// Writes `"name": "text"`, or nothing when `text` is `nil`.
    package mutating func member(_ name: String, _ text: String?) {
        guard let text else { return }
        key(name)
        string(text.utf8)
        needsComma = true
    }

    /// Writes `"name": "text"` for a secret that is UTF-8.
    package mutating func member(_ name: String, _ secret: Secret) {
        key(name)
        var bytes = secret.unprotectedBytes()
        defer { SmallFile.wipe(&bytes) }
        string(bytes)
        needsComma = true
    }

    /// Writes `"name": number`, or nothing when `number` is `nil`.
    package mutating func member(_ name: String, _ number: Int?) {
        guard let number else { return }
        key(name)
        output.write(String(number))
        needsComma = true
    }

    /// Writes `"name": true|false`.
    package mutating func member(_ name: String, _ flag: Bool) {
        key(name)
        output.write(flag ? "true" : "false")
        needsComma = true
    }

    /// Writes `"name": 12.3`, with one decimal.
    package mutating func member(_ name: String, tenths number: Double) {
        key(name)
        let tenths = Int((number * 10).rounded())
        output.write("\(tenths / 10).\(tenths % 10)")
        needsComma = true
    }

    /// Writes `"text"` as an array element.
    package mutating func element(_ text: String) {
        separate()
        string(text.utf8)
        needsComma = true
    }

    /// Writes `"value": "…"` when the bytes are UTF-8, `"valueBase64": "…"` otherwise.
    package mutating func value(_ bytes: [UInt8]) {
        if isText(bytes) {
            key("value")
            string(bytes)
        } else {
            key("valueBase64")
            output.write("\"")
            base64(bytes)
            output.write("\"")
        }
        needsComma = true
    }

    /// Writes one object of numbers on a line of its own.
    package static func line(_ figures: KeyValuePairs<String, Int>, to output: Output) {
        var json = JSONWriter(output)
        json.object { json in
            for (name, figure) in figures { json.member(name, figure) }
        }
        json.end()
    }

    /// Ends the line.
    package func end() { output.write("\n") }

    private mutating func nest(_ open: String, _ close: String, _ body: (inout JSONWriter) -> Void) {
        separate()
        output.write(open)
        needsComma = false
        body(&self)
        output.write(close)
        needsComma = true
    }

    private mutating func key(_ name: String) {
        separate()
        string(name.utf8)
        output.write(":")
        needsComma = false
    }

    private func separate() {
        if needsComma { output.write(",") }
    }

    /// Writes the UTF-8 bytes as a string. Escapes C0 and C1 control characters, because a terminal would
    /// obey them.
    private func string(_ bytes: some Sequence<UInt8>) {
        output.write("\"")
        // U+0080 to U+009F are encoded as this byte and a byte of the same value.
        let lead: UInt8 = 0xc2
        var followsLead = false
        for byte in bytes {
            if followsLead {
                followsLead = false
                if byte < 0xa0 {
                    escape(byte)
                } else {
                    output.write([lead, byte])
                }
                continue
            }
            switch byte {
            case lead: followsLead = true
            case UInt8(ascii: "\""): output.write("\\\"")
            case UInt8(ascii: "\\"): output.write("\\\\")
            case 0x0a: output.write("\\n")
            case 0x0d: output.write("\\r")
            case 0x09: output.write("\\t")
            case 0..<0x20, 0x7f: escape(byte)
            default: output.write(CollectionOfOne(byte))
            }
        }
        output.write("\"")
    }

    private func escape(_ byte: UInt8) {
        output.write("\\u00")
        output.write([Self.hexadecimal[Int(byte >> 4)], Self.hexadecimal[Int(byte & 15)]])
    }

    private func isText(_ bytes: [UInt8]) -> Bool {
        do {
            _ = try UTF8Span(validating: bytes.span)
            return true
        } catch { return false }
    }

    private func base64(_ bytes: [UInt8]) {
        var index = 0
        while index < bytes.count {
            let left = bytes.count - index
            let first = bytes[index]
            let second = left > 1 ? bytes[index + 1] : 0
            let third = left > 2 ? bytes[index + 2] : 0
            output.write([
                Self.base64Alphabet[Int(first >> 2)],
                Self.base64Alphabet[Int((first & 3) << 4 | second >> 4)],
                left > 1 ? Self.base64Alphabet[Int((second & 15) << 2 | third >> 6)] : UInt8(ascii: "="),
                left > 2 ? Self.base64Alphabet[Int(third & 63)] : UInt8(ascii: "="),
            ])
            index += 3
        }
    }

    private static let hexadecimal = Array("0123456789abcdef".utf8)
    private static let base64Alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
}
