#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// The parts of a response that matter to authorization.
public struct ResponseMetadata: Sendable {
    /// The status code.
    public var status: Int
    /// The time of the `Date` header; `nil` if the header is missing or unreadable.
    public var serverDate: Date?
    /// The values of the `WWW-Authenticate` headers (RFC 9110 section 11.6.1).
    public var challenges: [String]

    /// Creates the metadata of a response.
    public init(status: Int, serverDate: Date? = nil, challenges: [String] = []) {
        self.status = status
        self.serverDate = serverDate
        self.challenges = challenges
    }

    /// Whether the request needs more scopes than the token has (`insufficient_scope`, RFC 6750 section 3.1),
    /// which no renewal adds.
    var needsOtherScope: Bool { (status == 401 || status == 403) && names("insufficient_scope") }

    /// Whether the server demands a new nonce in the proof of a bound token (RFC 9449 section 9).
    package var demandsNonce: Bool { status == 401 && names("use_dpop_nonce") }

    /// Whether the server refused the proof of a bound token (RFC 9449 section 7.1). A refresh changes no proof.
    var refusesProof: Bool { demandsNonce || status == 401 && names("invalid_dpop_proof") }

    /// Whether a challenge has the code `error`.
    private func names(_ error: String) -> Bool {
        challenges.contains { Self.errors(in: $0).contains(error) }
    }

    /// Returns the values of the parameters called `error` in a challenge (RFC 9110 section 11.2).
    private static func errors(in challenge: String) -> [String] {
        var errors: [String] = []
        var rest = Array(challenge.utf8)[...]
        func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        while !rest.isEmpty {
            rest = rest.drop { isSpace($0) || $0 == UInt8(ascii: ",") }
            let name = rest.prefix { !isSpace($0) && $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "=") }
            rest = rest.dropFirst(name.count).drop(while: isSpace)
            guard rest.first == UInt8(ascii: "=") else { continue }
            rest = rest.dropFirst().drop(while: isSpace)
            let value = value(&rest)
            if String(decoding: name, as: UTF8.self).lowercased() == "error" { errors.append(value) }
        }
        return errors
    }

    /// Takes a token or a quoted text off the front of `rest`.
    private static func value(_ rest: inout ArraySlice<UInt8>) -> String {
        var value: [UInt8] = []
        guard rest.first == UInt8(ascii: "\"") else {
            while let byte = rest.first, byte != UInt8(ascii: " "), byte != UInt8(ascii: "\t"),
                byte != UInt8(ascii: ",")
            {
                value.append(rest.removeFirst())
            }
            return String(decoding: value, as: UTF8.self)
        }
        rest.removeFirst()
        while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
            let isEscape = byte == UInt8(ascii: "\\")
            value.append(isEscape ? rest.popFirst() ?? byte : byte)
        }
        return String(decoding: value, as: UTF8.self)
    }
}
