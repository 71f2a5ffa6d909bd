#if OAuth
internal import TokenVaultAuth

/// An address that was checked before anything is sent there.
struct WebAddress: Sendable, Hashable {
    let text: String
    let origin: RequestOrigin
    /// The path, from the first slash on, without the query.
    let path: String
    let query: String?

    /// Creates the address in `text`; `nil` unless it is `https` or `http` with an unambiguous origin. Also
    /// returns `nil` if it is longer than 8 KiB, or has characters that no address has (RFC 3986 appendix A).
    init?(_ text: String) {
        guard text.utf8.count <= 8_192, let origin = RequestOrigin(address: text) else { return nil }
        // After the two slashes, the first slash or question mark begins the path or the query.
        let place = text.utf8.dropFirst(origin.scheme.utf8.count + 3).drop { $0 != 0x2f && $0 != 0x3f }
        let path = place.prefix { $0 != 0x3f }
        guard place.isEncoded else { return nil }
        self.text = text
        self.origin = origin
        self.path = String(Substring(path))
        query = path.endIndex == place.endIndex ? nil : String(Substring(place[path.endIndex...].dropFirst()))
    }

    /// Returns the address in `text` if data sent there cannot be read on the way.
    static func secure(_ text: String) -> WebAddress? {
        WebAddress(text).flatMap { $0.origin.keepsSecrets ? $0 : nil }
    }

    /// The scheme, host and port, as they are written.
    var root: String {
        String(text.prefix(text.count - path.count - (query.map { $0.count + 1 } ?? 0)))
    }

    /// Returns the address with more fields in its query.
    func adding(_ fields: FormEncoding.Fields) -> String {
        let separator = query == nil ? "?" : query == "" ? "" : "&"
        return text + separator + FormEncoding.encode(fields)
    }
}

extension Substring.UTF8View {
    /// Whether the address has only the characters of a path and a query, with `%` and two digits for others.
    /// Brackets in a query are common, and allowed.
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
