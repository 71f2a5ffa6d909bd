#if OAuth
internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// A JWT in compact form (RFC 7519 section 3, RFC 7515 section 7.1), taken apart and not believed yet.
struct SignedToken {
    /// The name of its algorithm (`alg`).
    let algorithm: String
    /// The name of its key (`kid`).
    let keyID: String?
    let payload: [UInt8]
    let signature: [UInt8]
    /// What the signature is of.
    let signed: [UInt8]

    /// The longest that is looked at, in bytes.
    static let longest = 256 << 10

    /// The parts of `text`; `nil` when it has other than three, when one is not Base64 of the URL alphabet, or when the
    /// header is no object with an algorithm, says that something must be understood which is not (`crit`), or that it is a JWT of
    /// another kind, as an access token is (`at+jwt`, RFC 8725 section 3.11).
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
