package import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The reason that `vaultctl-oauth` failed. It has no token and no server text in it.
package struct WorkerFailure: Codable, Error, Sendable, Equatable {
    /// The kinds of failure. The first eight correspond exactly to those of `RefreshFailure`.
    package enum Kind: String, Codable, Sendable, CaseIterable {
        case invalidGrant, refused, throttled, notSent, serverError, unusable, interrupted, noAnswer
        /// An input cannot be used; ``WorkerFailure/detail`` says which.
        case invalid
        /// The client's private key cannot be used.
        case invalidKey
        /// The provider's metadata cannot be used.
        case invalidMetadata
        /// The provider's own name differs from the issuer, has an additional slash at its end, or lacks one.
        case otherIssuer, issuerWithSlash, issuerWithoutSlash
        /// The metadata is that of all tenants of the provider.
        case issuerOfAllTenants
        /// The metadata is at another address: that in ``WorkerFailure/detail``, or one that cannot be used.
        case redirected
        /// The metadata sends the user to the origin in ``WorkerFailure/detail``, which is not allowed.
        case foreignEndpoint
        /// The provider does not support the request.
        case unsupported
        /// The provider's response cannot be used.
        case malformedResponse
        /// The user denied access.
        case accessDenied
        /// The provider ended the authorization with the code in ``WorkerFailure/detail``.
        case authorizationRefused
        case wrongIssuer, wrongState
        /// The user did not answer in time, or the request took too long. As far as is known, the user did
        /// not sign in.
        case timedOut
        /// The worker could not listen on a loopback port.
        case cannotListen
        case invalidIDToken
        /// An ID token was requested, and none arrived.
        case noIDToken
        case cancelled
        /// The worker was built without the OAuth code.
        case notBuilt
        /// The worker does not know the request.
        case misunderstood
    }

    package var kind: Kind
    /// The part or the code that the failure is about.
    package var detail: String?
    /// The HTTP status.
    package var status: Int?
    /// The earliest time of the next request, in seconds since 1970.
    package var retryAfter: Double?
    /// The provider's clock, in seconds since 1970.
    package var serverDate: Double?
    /// Whether the provider issued tokens that are not used and could not be revoked.
    package var leavesTokens: Bool?
    /// Whether the provider may have a session whose tokens were lost with the answer.
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

    /// The same failure for a refresh. Distinguishes requests that certainly were not sent from requests that
    /// may have been.
    package var refreshFailure: RefreshFailure {
        let kind: RefreshFailure.Kind =
            switch self.kind {
            case .invalidGrant: .invalidGrant
            case .refused: .refused(detail ?? "")
            case .throttled: .throttled
            case .notSent: .notSent
            case .serverError: .serverError(status ?? 500)
            case .unusable: .unusable(status ?? 200)
            case .notBuilt, .misunderstood, .invalid, .invalidKey, .invalidMetadata, .otherIssuer,
                .issuerWithSlash,
                .issuerWithoutSlash, .issuerOfAllTenants, .redirected, .foreignEndpoint, .unsupported:
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
