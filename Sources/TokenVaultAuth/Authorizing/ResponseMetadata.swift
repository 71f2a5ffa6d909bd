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
    var needsOtherScope: Bool {
        (status == 401 || status == 403)
            && challenges.contains { Self.error(in: $0) == "insufficient_scope" }
    }

    /// Returns the value of the parameter `error` in a challenge.
    private static func error(in challenge: String) -> String? {
        var isQuoted = false
        let parts = challenge.utf8.split { byte in
            if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
            return !isQuoted && (byte == UInt8(ascii: ",") || byte == UInt8(ascii: " "))
        }
        for part in parts {
            let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1)
            guard pair.count == 2, String(Substring(pair[0])).lowercased() == "error" else { continue }
            return String(Substring(pair[1])).replacing("\"", with: "")
        }
        return nil
    }
}
