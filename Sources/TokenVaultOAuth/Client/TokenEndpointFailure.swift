#if OAuth
internal import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The failure in an error response (RFC 6749 section 5.2, RFC 9110 section 15).
///
/// A body that is an object with a text `error` and no token states the error, also with a status of success: GitHub
/// answers so. After 429 and 5xx the status counts, since a gateway may have answered for the token endpoint.
enum TokenEndpointFailure {
    private struct Document: Decodable {
        let code: String?

        private enum CodingKeys: String, CodingKey {
            case error
            case accessToken = "access_token"
            case refreshToken = "refresh_token"
        }

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            // A token that was issued has to be used or revoked, whatever else the answer says.
            let hasTokens = [CodingKeys.accessToken, .refreshToken].contains { key in
                guard let isNull = try? values.decodeNil(forKey: key), !isNull else { return false }
                return (try? values.decode(String.self, forKey: key)) != ""
            }
            let code = hasTokens ? nil : try? values.decode(String.self, forKey: .error)
            self.code = code == "" ? nil : code
        }
    }

    static func failure(of answer: OAuthTransport.Answer) -> RefreshFailure {
        RefreshFailure(kind(of: answer), retryAfter: answer.retryAfter, serverDate: answer.serverDate)
    }

    /// Returns the failure of an answer that has to be a success with a document; `nil` when it can be one.
    static func refusal(in answer: OAuthTransport.Answer) -> RefreshFailure? {
        if answer.isSuccess, code(in: answer.body) == nil { return nil }
        return failure(of: answer)
    }

    private static func kind(of answer: OAuthTransport.Answer) -> RefreshFailure.Kind {
        switch answer.status {
        case 429: return .throttled
        case 503 where answer.retryAfter != nil: return .throttled
        case 500...599: return .serverError(answer.status)
        default:
            // A gateway may also reject the request, with a page that has no error code.
            switch code(in: answer.body) {
            case nil: return .unusable(answer.status)
            // The second is GitHub's word for it, the third that of others.
            case "invalid_grant", "bad_refresh_token", "invalid_refresh_token": return .invalidGrant
            case let code?: return .refused(code)
            }
        }
    }

    private static func code(in body: [UInt8]) -> String? {
        (try? JSONDecoder().decode(Document.self, from: Data(body)))?.code.map(word)
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
