#if OAuth
internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// A JWT in compact form (RFC 7519 section 3, RFC 7515 section 7.1), parsed but not yet verified.
struct SignedToken {
    /// The name of the algorithm (`alg`).
    let algorithm: String
    /// The name of the key (`kid`).
    let keyID: String?
    let payload: [UInt8]
    let signature: [UInt8]
    /// The bytes that are signed.
    let signed: [UInt8]

    /// The longest accepted token, in bytes.
    static let longest = 256 << 10

    /// Parses `text`; returns `nil` unless it has three parts in URL-safe Base64. The header has to be an
    /// object with an algorithm, without an extension that must be understood (`crit`). Also returns `nil`
    /// for another kind of JWT, such as an access token (`at+jwt`, RFC 8725 section 3.11).
    init?(_ text: String) {
        guard text.utf8.count <= Self.longest else { return nil }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Base64.urlDecode(parts[0]),
            let payload = Base64.urlDecode(parts[1]), let signature = Base64.urlDecode(parts[2]),
            let document = try? JSONDecoder().decode(Header.self, from: Data(header)), document.crit == nil,
            !document.isOfAnotherKind
        else { return nil }
        algorithm = document.alg
        keyID = document.kid
        self.payload = payload
        self.signature = signature
        signed = Array(text.utf8.prefix(parts[0].utf8.count + 1 + parts[1].utf8.count))
    }

    private struct Header: Decodable {
        let alg: String
        let kid: String?
        let crit: [String]?
        let typ: String?

        var isOfAnotherKind: Bool { typ?.lowercased().hasSuffix("+jwt") ?? false }
    }
}
#endif
