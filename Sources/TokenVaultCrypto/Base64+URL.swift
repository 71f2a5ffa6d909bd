extension Base64 {
    private static let urlAlphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// Returns `bytes` in the alphabet for URLs and file names, without padding (RFC 4648, section 5). The
    /// string is not wiped.
    package static func urlText(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count * 4 + 2) / 3)
        var pending: UInt32 = 0
        var bits = 0
        for byte in bytes {
            pending = pending << 8 | UInt32(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(urlAlphabet[Int(pending >> UInt32(bits) & 63)])
            }
        }
        if bits > 0 { text.append(urlAlphabet[Int(pending << UInt32(6 - bits) & 63)]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the bytes from which ``urlText(_:)`` makes `text`. Returns `nil` for text that it never makes:
    /// padding, other letters, bits left over.
    package static func urlDecode(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count * 3 / 4)
        var pending: UInt32 = 0
        var bits = 0
        for letter in text.utf8 {
            guard let value = urlValue(letter) else { return nil }
            pending = (pending << 6 | value) & 0xffff
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: pending >> UInt32(bits)))
            }
        }
        guard bits < 6, pending & ((1 << UInt32(bits)) - 1) == 0 else { return nil }
        return bytes
    }

    private static func urlValue(_ letter: UInt8) -> UInt32? {
        switch letter {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(letter - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(letter - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(letter - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
