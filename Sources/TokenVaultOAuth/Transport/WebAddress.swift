#if OAuth
internal import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// An address that was looked at before anything is sent there.
struct WebAddress: Sendable, Hashable {
    let text: String
    let origin: RequestOrigin
    /// From the first slash on, without query.
    let path: String
    let query: String?

    /// The address in `text`; `nil` when it is none of `https` or `http`, has a user in it, a fragment, or characters that no
    /// address has.
    init?(_ text: String) {
        guard text.utf8.count <= 8_192, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }),
            let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased(),
            scheme == "https" || scheme == "http", let host = parts.host, !host.isEmpty,
            parts.user == nil, parts.password == nil, parts.fragment == nil,
            (1...65_535).contains(parts.port ?? 443)
        else { return nil }
        self.text = text
        origin = RequestOrigin(scheme: scheme, host: host, port: parts.port)
        path = parts.percentEncodedPath
        query = parts.percentEncodedQuery
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
#endif
