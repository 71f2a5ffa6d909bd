#if OAuth
public import TokenVault
public import TokenVaultAuth
internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// The values that an ID token is checked against, in addition to the provider and the client.
public struct IDTokenExpectation: Sendable {
    /// The nonce of the request; `nil` for a grant without one.
    public var nonce: String?
    /// The access token that came with the ID token; `nil` when that is not known.
    public var accessToken: String?
    /// The longest time since the user signed in (`max_age`); `nil` for any time.
    public var maximumAge: Duration?

    /// Creates an expectation.
    public init(nonce: String? = nil, accessToken: String? = nil, maximumAge: Duration? = nil) {
        self.nonce = nonce
        self.accessToken = accessToken
        self.maximumAge = maximumAge
    }
}

extension IDTokenExpectation: RedactedStringConvertible {}

/// Checks ID tokens (OpenID Connect Core section 3.1.3.7): first the signature by one of the provider's keys,
/// then the claims. The keys are kept, and fetched again when a token names an unknown key.
public struct IDTokenValidator: Sendable {
    /// The rules for accepting a token.
    public struct Configuration: Sendable {
        /// The accepted algorithms with a public key; the provider's list, if there is one, limits them further.
        /// Default: all. For `HS256` see ``clientSecret``.
        public var algorithms: Set<SigningAlgorithm> = Set(SigningAlgorithm.allCases)
        /// The largest accepted difference of the provider's clock. Default: 60 s.
        public var leeway: Duration = .seconds(60)
        /// Other clients that a token may also be for, or be issued to (`azp`). Default: none.
        public var trustedAudiences: Set<String> = []
        /// The client's secret, for tokens that are signed with it (`HS256`). Counts only if it has 32 bytes or
        /// more (RFC 7518 section 3.2), and the provider's list has that algorithm. Default: none.
        public var clientSecret: Secret?
        /// The shortest pause between two fetches of the keys. Default: 60 s.
        public var keySetCoolDown: Duration = .seconds(60)
        /// The time after which the keys are fetched again. The validator accepts a key that the provider has
        /// withdrawn no longer than that. Default: 1 h.
        public var keySetAge: Duration = .seconds(3_600)

        /// Creates the default configuration.
        public init() {}
    }

    private let issuer: String
    private let hasUnusableKeySet: Bool
    private let clientID: String
    private let configuration: Configuration
    private let algorithms: Set<SigningAlgorithm>
    private let sharedKey: SharedKey?
    private let clock: @Sendable () -> Date
    private let keySet: ProviderKeySet?

    /// Creates a validator of the tokens that `provider` issues to `clientID`. Fetches nothing yet.
    public init(
        provider: ProviderMetadata, clientID: String, configuration: Configuration = Configuration(),
        transport: OAuthTransport, clock: @escaping @Sendable () -> Date = { Date() }
    ) {
        issuer = provider.issuer
        hasUnusableKeySet = provider.unusable.contains(.keySet)
        self.clientID = clientID
        self.configuration = configuration
        self.clock = clock
        let offered = provider.idTokenSigningAlgValuesSupported.map {
            Set($0.compactMap(SigningAlgorithm.init(rawValue:)))
        }
        let mayShare = provider.idTokenSigningAlgValuesSupported?.contains(SharedKey.algorithm) ?? false
        sharedKey = mayShare ? configuration.clientSecret.flatMap { SharedKey($0) } : nil
        algorithms = offered.map { $0.intersection(configuration.algorithms) } ?? configuration.algorithms
        keySet = provider.jwksURI.flatMap(WebAddress.secure).map { address in
            ProviderKeySet(
                coolDown: configuration.keySetCoolDown, longestAge: configuration.keySetAge, clock: clock
            ) {
                let answer: OAuthTransport.Answer
                do throws(RefreshFailure) { answer = try await transport.get(address) } catch {
                    return .failure(.requestFailed(error))
                }
                guard answer.status == 200 else {
                    return .failure(.requestFailed(TokenEndpointFailure.failure(of: answer)))
                }
                guard let keys = ProviderKey.keys(in: answer.body) else {
                    return .failure(.malformedResponse("the key set"))
                }
                return .success(keys)
            }
        }
    }

    /// Checks `token` and returns its claims. `serverDate` is the `Date` header of the response with the
    /// token; times are then compared with the provider's own clock.
    ///
    /// Throws `invalidIDToken` with the problem. Throws `requestFailed` and `malformedResponse` when the keys could not
    /// be fetched. Throws `invalidMetadata` when the address of the keys cannot be used, `unsupported` when the
    /// provider has none, and `cancelled`.
    public func validate(
        _ token: String, expecting expectation: IDTokenExpectation = IDTokenExpectation(),
        serverDate: Date? = nil
    ) async throws(OAuthError) -> IDTokenClaims {
        guard let signed = SignedToken(token) else { throw .invalidIDToken(.malformed) }
        let algorithm: SigningAlgorithm
        if signed.algorithm == SharedKey.algorithm, let sharedKey {
            guard await sharedKey.verifies(signed) else { throw .invalidIDToken(.signature) }
            // The access token's hash has the digest of this one.
            algorithm = .rs256
        } else {
            guard let named = SigningAlgorithm(rawValue: signed.algorithm), algorithms.contains(named)
            else { throw .invalidIDToken(.algorithm) }
            try await verify(signed, with: named)
            algorithm = named
        }
        guard let claims = IDTokenClaims(signed) else { throw .invalidIDToken(.malformed) }
        if let problem = problem(of: claims, expectation, algorithm, now: serverDate ?? clock()) {
            throw .invalidIDToken(problem)
        }
        return claims
    }

    /// Checks the signature by one of the provider's keys.
    private func verify(
        _ token: SignedToken, with algorithm: SigningAlgorithm
    ) async throws(OAuthError) {
        guard let keySet else {
            throw hasUnusableKeySet
                ? .invalidMetadata(ProviderMetadata.Endpoint.keySet.rawValue)
                : .unsupported("keys for ID tokens")
        }
        let known = try await keySet.keys(named: token.keyID, for: algorithm)
        for key in known.keys where await key.verifies(token, with: algorithm) { return }
        // A token without a key's name may be signed with a key that is newer than the known ones.
        if token.keyID == nil {
            for key in await keySet.keys(newerThan: known, for: algorithm)
            where await key.verifies(token, with: algorithm) { return }
        }
        throw .invalidIDToken(.signature)
    }

    private func isTrusted(_ client: String) -> Bool {
        configuration.trustedAudiences.contains { $0.utf8.elementsEqual(client.utf8) }
    }

    private func problem(
        of claims: IDTokenClaims, _ expectation: IDTokenExpectation, _ algorithm: SigningAlgorithm, now: Date
    ) -> IDTokenProblem? {
        let leeway = configuration.leeway.inSeconds
        guard claims.issuer.utf8.elementsEqual(issuer.utf8) else { return .issuer }
        let others = claims.audience.filter { !$0.utf8.elementsEqual(clientID.utf8) }
        guard others.count < claims.audience.count,
            others.allSatisfy(isTrusted)
        else { return .audience }
        if let party = claims.authorizedParty {
            guard party.utf8.elementsEqual(clientID.utf8) || isTrusted(party) else { return .authorizedParty }
        } else if claims.audience.count > 1 {
            return .authorizedParty
        }
        guard now.timeIntervalSince(claims.expiry) < leeway else { return .expired }
        guard claims.issued.timeIntervalSince(now) <= leeway,
            (claims.notBefore ?? claims.issued).timeIntervalSince(now) <= leeway
        else { return .notYetValid }
        if let nonce = expectation.nonce {
            guard let repeated = claims.nonce, Secret(utf8: repeated) == Secret(utf8: nonce) else {
                return .nonce
            }
        }
        if let accessToken = expectation.accessToken, let hash = claims.accessTokenHash,
            let computed = algorithm.halfDigest(of: accessToken), Base64.urlDecode(hash) != computed
        {
            return .accessTokenHash
        }
        if let longest = expectation.maximumAge?.inSeconds {
            guard let authenticated = claims.authenticated,
                now.timeIntervalSince(authenticated) <= longest + leeway
            else { return .expired }
        }
        return nil
    }
}
#endif
