#if OAuth
internal import TokenVaultAuth

/// An address that was looked at before anything is sent there.
struct WebAddress: Sendable, Hashable {
    let text: String
    let origin: RequestOrigin
    /// From the first slash on, without query.
    let path: String
    let query: String?

    /// The address in `text`; `nil` when it is none of `https` or `http` whose origin is beyond doubt, is longer than 8 KiB, or
    /// has characters that no address has (RFC 3986 appendix A).
    init?(_ text: String) {
        guard text.utf8.count <= 8_192, let origin = RequestOrigin(address: text) else { return nil }
        // Behind the two slashes nothing up to the path has one, or a question mark.
        let place = text.utf8.dropFirst(origin.scheme.utf8.count + 3).drop { $0 != 0x2f && $0 != 0x3f }
        let path = place.prefix { $0 != 0x3f }
        guard place.isEncoded else { return nil }
        self.text = text
        self.origin = origin
        self.path = String(Substring(path))
        query = path.endIndex == place.endIndex ? nil : String(Substring(place[path.endIndex...].dropFirst()))
    }

    /// The address in `text`, if what is sent there cannot be read on the way.
    static func secure(_ text: String) -> WebAddress? {
        WebAddress(text).flatMap { $0.origin.keepsSecrets ? $0 : nil }
    }

    /// The address with more fields in its query.
    func adding(_ fields: FormEncoding.Fields) -> String {
        let separator = query == nil ? "?" : query == "" ? "" : "&"
        return text + separator + FormEncoding.encode(fields)
    }
}

extension Substring.UTF8View {
    /// Whether it has only the characters of a path and a query, others as `%` and two digits. Brackets in a query are common.
    fileprivate var isEncoded: Bool {
        var rest = self
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "%"):
                for _ in 0..<2 {
                    guard let digit = rest.popFirst(), Character(Unicode.Scalar(digit)).isHexDigit else {
                        return false
                    }
                }
            case UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"),
                UInt8(ascii: "^"),
                UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
                return false
            default: break
            }
        }
        return true
    }
}
#endif
