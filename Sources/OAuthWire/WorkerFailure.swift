package import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// Why `vaultctl-oauth` did not do what it was asked. It carries no token and no text of the server's.
package struct WorkerFailure: Codable, Error, Sendable, Equatable {
    /// What happened. The first eight are those of `RefreshFailure`, without loss.
    package enum Kind: String, Codable, Sendable, CaseIterable {
        case invalidGrant, refused, throttled, notSent, serverError, unusable, interrupted, noAnswer
        /// What was given cannot be used; ``WorkerFailure/detail`` says what.
        case invalid
        /// What the provider says of itself cannot be used.
        case invalidMetadata
        /// The provider's own name is another than the issuer's, has a slash more at its end, or one less.
        case otherIssuer, issuerWithSlash, issuerWithoutSlash
        /// The provider does not offer it.
        case unsupported
        /// The provider's answer cannot be used.
        case malformedResponse
        /// The person said no.
        case accessDenied
        /// The provider ended the authorization with the code of ``WorkerFailure/detail``.
        case authorizationRefused
        case wrongIssuer, wrongState
        /// No person answered in time, or what was asked took longer than it may. Nobody has signed in, as far as is known.
        case timedOut
        /// No port of the loopback could be listened on.
        case cannotListen
        case invalidIDToken
        /// An ID token was asked for, and none came.
        case noIDToken
        case cancelled
        /// The worker was built without what it needs.
        case notBuilt
        /// The request is none that the worker knows.
        case misunderstood
    }

    package var kind: Kind
    /// The part, or the code, that it is about.
    package var detail: String?
    /// The HTTP status.
    package var status: Int?
    /// When the provider wants to be asked again, in seconds since 1970.
    package var retryAfter: Double?
    /// The provider's clock, in seconds since 1970.
    package var serverDate: Double?
    /// Whether the provider gave tokens that are not used and could not be revoked.
    package var leavesTokens: Bool?
    /// Whether the provider may have a session that nobody has, since the answer that would have brought it was lost.
    package var mayLeaveSession: Bool?
    /// Whether no encrypted connection could be made.
    package var isNotTrusted: Bool?

    package init(_ kind: Kind, _ detail: String? = nil) {
        self.kind = kind
        self.detail = detail
    }

    package init(_ failure: RefreshFailure) {
        switch failure.kind {
        case .invalidGrant: self.init(.invalidGrant)
        case .refused(let code): self.init(.refused, code)
        case .throttled: self.init(.throttled)
        case .notSent: self.init(.notSent)
        case .serverError(let status):
            self.init(.serverError)
            self.status = status
        case .unusable(let status):
            self.init(.unusable)
            self.status = status
        case .interrupted: self.init(.interrupted)
        case .timedOut: self.init(.noAnswer)
        }
        retryAfter = failure.retryAfter?.timeIntervalSince1970
        serverDate = failure.serverDate?.timeIntervalSince1970
        leavesTokens = failure.leavesTokens ? true : nil
        mayLeaveSession = failure.mayLeaveSession ? true : nil
        isNotTrusted = failure.isNotTrusted ? true : nil
    }

    /// What it means for a refresh. What cannot have been sent is told apart from what may have been.
    package var refreshFailure: RefreshFailure {
        let kind: RefreshFailure.Kind =
            switch self.kind {
            case .invalidGrant: .invalidGrant
            case .refused: .refused(detail ?? "")
            case .throttled: .throttled
            case .notSent: .notSent
            case .serverError: .serverError(status ?? 500)
            case .unusable: .unusable(status ?? 200)
            case .notBuilt, .misunderstood, .invalid, .invalidMetadata, .otherIssuer, .issuerWithSlash,
                .issuerWithoutSlash, .unsupported:
                .refused("cannot_ask")
            case .noAnswer, .timedOut, .cancelled: .timedOut
            default: .interrupted
            }
        var failure = RefreshFailure(
            kind, retryAfter: retryAfter.map(Date.init(timeIntervalSince1970:)),
            serverDate: serverDate.map(Date.init(timeIntervalSince1970:)))
        failure.leavesTokens = leavesTokens ?? false
        failure.isNotTrusted = isNotTrusted ?? false
        return failure
    }
}
