#if OAuth
internal import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The failure in an error response (RFC 6749 section 5.2, RFC 9110 section 15).
enum TokenEndpointFailure {
    private struct Document: Decodable {
        let error: String
    }

    static func failure(of answer: OAuthTransport.Answer) -> RefreshFailure {
        RefreshFailure(kind(of: answer), retryAfter: answer.retryAfter, serverDate: answer.serverDate)
    }

    private static func kind(of answer: OAuthTransport.Answer) -> RefreshFailure.Kind {
        switch answer.status {
        case 429: return .throttled
        case 503 where answer.retryAfter != nil: return .throttled
        case 500...599: return .serverError(answer.status)
        case 400...499:
            // A gateway may also reject the request, with a page that has no error code.
            switch code(in: answer.body) {
            case nil: return .unusable(answer.status)
            case "invalid_grant": return .invalidGrant
            case let code?: return .refused(code)
            }
        default: return .unusable(answer.status)
        }
    }

    private static func code(in body: [UInt8]) -> String? {
        (try? JSONDecoder().decode(Document.self, from: Data(body))).map { word($0.error) }
    }

    /// Returns `code` if it is one word of letters and underscores, as every registered code is. The word is
    /// shown to the user.
    static func word(_ code: String) -> String {
        let isWord =
            (1...40).contains(code.utf8.count)
            && code.utf8.allSatisfy {
                $0 == UInt8(ascii: "_") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
            }
        return isWord ? code : "unknown_error"
    }
}

extension RefreshFailure {
    /// The same failure of a request that used the user's grant.
    var ofGrant: RefreshFailure {
        var failure = self
        failure.mayLeaveSession = true
        return failure
    }

    /// The same failure of a request without a refresh token: `invalid_grant` is then an ordinary rejection.
    var withoutRefreshToken: RefreshFailure {
        guard kind == .invalidGrant else { return self }
        return RefreshFailure(.refused("invalid_grant"), retryAfter: retryAfter, serverDate: serverDate)
    }
}
#endif
