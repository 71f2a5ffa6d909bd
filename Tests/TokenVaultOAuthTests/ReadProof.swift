#if OAuth
import Crypto
import Foundation
import NIOHTTP1
import TokenVaultCrypto

@testable import TokenVaultOAuth

/// A proof as a server reads it (RFC 9449 section 4.2): verified with the key in its header.
struct ReadProof {
    let method: String
    let url: String
    let nonce: String?
    let identifier: String
    let time: Int
    /// The thumbprint of the key (RFC 7638), computed without `DPoPKey`.
    let thumbprint: String
    /// The hash of the access token.
    let tokenHash: String?

    private struct Header: Decodable {
        let typ: String
        let alg: String
        let jwk: [String: String]
    }

    private struct Claims: Decodable {
        let jti: String
        let htm: String
        let htu: String
        let iat: Int
        let ath: String?
        let nonce: String?
    }

    /// Reads the value of a `DPoP` header; `nil` unless the proof has a valid signature.
    init?(_ text: String?) {
        let parts = (text ?? "").split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let signature = Base64.urlDecode(parts[2]),
            let header = Base64.urlDecode(parts[0]).flatMap({
                try? JSONDecoder().decode(Header.self, from: Data($0))
            }),
            let claims = Base64.urlDecode(parts[1]).flatMap({
                try? JSONDecoder().decode(Claims.self, from: Data($0))
            }),
            header.typ == "dpop+jwt", header.alg == "ES256",
            // The header must not contain the private key.
            Set(header.jwk.keys) == ["kty", "crv", "x", "y"], header.jwk["kty"] == "EC",
            header.jwk["crv"] == "P-256", let x = header.jwk["x"].flatMap({ Base64.urlDecode($0[...]) }),
            let y = header.jwk["y"].flatMap({ Base64.urlDecode($0[...]) }), x.count == 32, y.count == 32,
            let key = try? P256.Signing.PublicKey(rawRepresentation: x + y),
            let signed = try? P256.Signing.ECDSASignature(rawRepresentation: signature),
            key.isValidSignature(signed, for: Data("\(parts[0]).\(parts[1])".utf8))
        else { return nil }
        (method, url, nonce) = (claims.htm, claims.htu, claims.nonce)
        (identifier, time, tokenHash) = (claims.jti, claims.iat, claims.ath)
        let members =
            #"{"crv":"P-256","kty":"EC","x":"\#(Base64.urlText(x))","y":"\#(Base64.urlText(y))"}"#
        thumbprint = Self.hash(members)
    }

    /// Returns SHA-256 of `text` in the URL-safe alphabet.
    static func hash(_ text: String) -> String {
        Base64.urlText(Array(SHA256.hash(data: Data(text.utf8))))
    }
}

extension ScriptedServer.Asked {
    /// The proof in the request; `nil` without a valid one.
    var proof: ReadProof? { ReadProof(headers.first(name: "DPoP")) }
}
#endif
