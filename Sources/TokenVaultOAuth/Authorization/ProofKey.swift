#if OAuth
internal import TokenVault
internal import TokenVaultCrypto

/// Proof Key for Code Exchange (RFC 7636), always with S256: `plain` would reveal the verifier in the
/// request.
struct ProofKey: Sendable {
    /// 43 to 128 unreserved characters.
    let verifier: Secret

    /// Creates a verifier of 32 random bytes, as RFC 7636 section 4.1 recommends.
    init() { verifier = RandomText.make() }

    init(verifier: Secret) { self.verifier = verifier }

    /// `BASE64URL(SHA256(verifier))` (section 4.2).
    var challenge: String {
        Base64.urlText(Hash.sha256(verifier.unprotectedBytes()))
    }
}

/// Unguessable text: 32 bytes of libsodium's `randombytes_buf` in the URL-safe alphabet.
enum RandomText {
    static func make() -> Secret { Secret(utf8: Base64.urlText(Random.bytes(32))) }
}
#endif
