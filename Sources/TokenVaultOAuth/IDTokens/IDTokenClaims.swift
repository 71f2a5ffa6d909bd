#if OAuth
public import TokenVaultAuth
internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// The claims of an ID token (OpenID Connect Core section 2).
public struct IDTokenClaims: Sendable, Equatable {
    /// The provider that issued the token (`iss`).
    public let issuer: String
    /// The provider's permanent identifier of the user (`sub`).
    public let subject: String
    /// The clients that the token is for (`aud`).
    public let audience: [String]
    /// The client that the token was issued to (`azp`).
    public let authorizedParty: String?
    /// The expiry (`exp`), by the provider's clock.
    public let expiry: Date
    /// The time of issue (`iat`), by the provider's clock.
    public let issued: Date
    /// The time from which the token is valid (`nbf`).
    public let notBefore: Date?
    /// The time when the user signed in (`auth_time`).
    public let authenticated: Date?
    /// The user's email address (`email`).
    public let email: String?
    /// Whether the provider has verified the address (`email_verified`).
    public let isEmailVerified: Bool?
    /// The user's name (`name`).
    public let name: String?
    /// The user's preferred name at the provider (`preferred_username`).
    public let preferredUsername: String?
    let nonce: String?
    let accessTokenHash: String?

    /// Reads the claims of `token` without checking them; returns `nil` when it is not a JWT with the
    /// required claims.
    init?(unverified token: String) {
        guard let token = SignedToken(token) else { return nil }
        self.init(token)
    }

    init?(_ token: SignedToken) {
        guard let document = try? JSONDecoder().decode(Document.self, from: Data(token.payload)),
            document.iss.utf8.count <= 2_048, (1...1_024).contains(document.sub.utf8.count)
        else { return nil }
        issuer = document.iss
        subject = document.sub
        audience = document.aud.names
        authorizedParty = document.azp
        expiry = document.exp.time
        issued = document.iat.time
        notBefore = document.nbf?.time
        authenticated = document.auth_time?.time
        email = document.email
        isEmailVerified = document.email_verified?.value
        name = document.name
        preferredUsername = document.preferred_username
        nonce = document.nonce
        accessTokenHash = document.at_hash
    }

    /// Whether a refresh may return these claims after `previous` (OpenID Connect Core section 12.2).
    func isContinuation(of previous: IDTokenClaims) -> Bool {
        issuer.utf8.elementsEqual(previous.issuer.utf8) && subject.utf8.elementsEqual(previous.subject.utf8)
            && audience.map { Array($0.utf8) } == previous.audience.map { Array($0.utf8) }
    }

    /// The claims as they are written. An optional claim that describes the user and cannot be read counts as
    /// absent. One that limits the token has to be readable.
    private struct Document: Decodable {
        let iss: String
        let sub: String
        let aud: Names
        let azp: String?
        let exp: Time
        let iat: Time
        let nbf: Time?
        let auth_time: Time?  // swift-format-ignore: AlwaysUseLowerCamelCase
        let nonce: String?
        let at_hash: String?  // swift-format-ignore: AlwaysUseLowerCamelCase
        let email: String?
        let email_verified: Truth?  // swift-format-ignore: AlwaysUseLowerCamelCase
        let name: String?
        let preferred_username: String?  // swift-format-ignore: AlwaysUseLowerCamelCase

        private enum CodingKeys: String, CodingKey {
            case iss, sub, aud, azp, exp, iat, nbf, auth_time, nonce, at_hash, email, email_verified, name,
                preferred_username
        }

        init(from decoder: any Decoder) throws {
            let claims = try decoder.container(keyedBy: CodingKeys.self)
            func optional<Value: Decodable>(_ key: CodingKeys) -> Value? {
                try? claims.decode(Value.self, forKey: key)
            }
            iss = try claims.decode(String.self, forKey: .iss)
            sub = try claims.decode(String.self, forKey: .sub)
            aud = try claims.decode(Names.self, forKey: .aud)
            exp = try claims.decode(Time.self, forKey: .exp)
            iat = try claims.decode(Time.self, forKey: .iat)
            azp = try claims.decodeIfPresent(String.self, forKey: .azp)
            nbf = try claims.decodeIfPresent(Time.self, forKey: .nbf)
            at_hash = try claims.decodeIfPresent(String.self, forKey: .at_hash)
            auth_time = optional(.auth_time)
            nonce = optional(.nonce)
            email = optional(.email)
            email_verified = try claims.decodeIfPresent(Truth.self, forKey: .email_verified)
            name = optional(.name)
            preferred_username = optional(.preferred_username)
        }
    }

    /// One name, or several (RFC 7519 section 4.1.3).
    private struct Names: Decodable {
        let names: [String]

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if let name = try? value.decode(String.self) {
                names = [name]
            } else {
                names = try value.decode([String].self)
            }
        }
    }

    /// Seconds since 1970 (RFC 7519 section 2, NumericDate), before the year 10000.
    private struct Time: Decodable {
        let time: Date

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            let seconds = try value.decode(Double.self)
            guard (0...253_402_300_799).contains(seconds) else {
                throw DecodingError.dataCorruptedError(in: value, debugDescription: "no time")
            }
            time = Date(timeIntervalSince1970: seconds)
        }
    }

    /// A truth value, which some providers write as text or as a number. Anything else is false.
    private struct Truth: Decodable {
        let value: Bool

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let value = try? container.decode(Bool.self) {
                self.value = value
            } else if let number = try? container.decode(Double.self) {
                value = number == 1
            } else {
                value = (try? container.decode(String.self)) == "true"
            }
        }
    }
}

extension IDTokenClaims: RedactedStringConvertible {
    /// The issuer and the expiry; nothing about the user.
    public var description: String {
        "IDTokenClaims(\(issuer), expires: \(Int64(expiry.timeIntervalSince1970)))"
    }
}
#endif
