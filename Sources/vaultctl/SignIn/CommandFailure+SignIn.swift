import OAuthWire
import SystemPackage
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

#if canImport(FoundationEssentials)
import FoundationEssentials
import ProgramSupport
#endif

extension CommandFailure {
    /// Creates the failure to get a token of the profile `name`. `trouble` is the result of the last request,
    /// of which the token manager knows only a part.
    init(_ error: TokenError, _ trouble: OAuthProgram.WorkerError?, _ name: String) {
        let signIn = Self.signingIn(name)
        switch error {
        case .tokenNotFound: self = .notSignedIn(name)
        case .refreshTokenMissing, .refreshTokenExpired, .sessionExpired:
            let reason =
                error == .sessionExpired ? "the provider has ended the session" : "the session has expired"
            self.init(.notFound, reason, "run \(signIn)")
        case .refreshFailed(let failure, let time):
            self.init(failure, trouble, retryAfter: time, signIn)
        case .tokenRefused, .scopeInsufficient:
            // Only an API rejects access tokens, and this program sends no request to an API.
            self.init(.refused, error.description, "run \(signIn)")
        case .sessionChanged:
            self.init(.conflict, "the session was replaced or ended meanwhile", "try again")
        case .notSaved(let reason):
            self.init(reason)
            happened = "the new tokens could not be stored and are lost: \(happened)"
            // The advice about an ignored key file must come before the text added here, not replace it.
            cause = nil
            advice += "; \(Self.nextTry(name))"
        case .storage(let reason) where reason.code == .conflict && reason.backend == "auth":
            self.init(.conflict, "other programs keep changing the profile", "try again")
        case .storage(let reason):
            self.init(reason)
            if reason.code == .notPermitted {
                advice =
                    "run \"vaultctl unlock --passphrase-file …\" first; for a session that a key file alone opens, run \(signIn) with "
                    + "--policy after-first-unlock-this-device-only"
            }
        case .unknownRecord:
            self.init(
                .unavailable, "the stored session has a format that this program does not know",
                "use the newer program, or run \(signIn)")
        case .malformed(let what):
            self.init(.failure, "\(what) from the provider cannot be used", "report it to the provider")
        case .notRevoked(let failure):
            self = CommandFailure(untold: .failed(WorkerFailure(failure))).afterSigningOut
        case .timedOut:
            self.init(
                .timedOut, "timed out waiting for the new token", "try again with a longer --timeout")
        case .cancelled: self.init(.failure, "cancelled", "try again")
        }
    }

    /// The text about a token whose expiry is unknown although the provider named one.
    static let unusableLifetime = "the token's lifetime is unusable, so its expiry is unknown"

    /// Advice for a certificate of a private authority.
    private static let trusting =
        "trust the authority on this machine (update-ca-certificates), or sign in with --ca-file"

    /// Returns the failure when new tokens arrived and the vault did not confirm storing them in time.
    static func notStoredInTime(_ name: String) -> CommandFailure {
        CommandFailure(
            .timedOut, "the new tokens could not be stored in time and are lost",
            "check the vault with \"vaultctl status\"; \(nextTry(name))")
    }

    /// Returns the text on the future of a session whose newer tokens are lost.
    static func nextTry(_ name: String) -> String {
        "the next call sends the previous token once more; if the provider rejects it, run \(signingIn(name))"
    }

    /// Returns the failure for a session of another client or provider than the profile's. Its tokens must
    /// not be sent anywhere.
    static func otherSource(_ name: String) -> CommandFailure {
        CommandFailure(
            .conflict, "the session belongs to another provider or client than the profile, and was not sent",
            "run \(signingIn(name))")
    }

    /// Creates the failure of a request with a session's tokens.
    private init(
        _ failure: RefreshFailure, _ trouble: OAuthProgram.WorkerError?, retryAfter: Date?, _ signIn: String
    ) {
        switch failure.kind {
        case .throttled:
            let time = retryAfter.map { " before \(Timestamp.text($0))" } ?? " yet"
            let reason: String
            if case .failed(let failure) = trouble, failure.kind == .throttled {
                reason = "the provider limits requests, so it"
            } else {
                reason = "the last attempt failed, so the provider"
            }
            let left = retryAfter.map { max(1, Int($0.timeIntervalSinceNow.rounded(.up))) }
            self.init(
                .unavailable, "\(reason) is not asked\(time)",
                left.map { "try again in \($0) seconds" } ?? "try again then")
        case .refused("invalid_dpop_proof"):
            self.init(.refused, "\(failure)", Self.checkingClock)
        case .refused("use_dpop_nonce"):
            self.init(.refused, "\(failure)", "try again, with a longer --timeout if there was one")
        case .refused("cannot_ask"):
            guard let trouble else { fallthrough }
            self.init(trouble, isSignIn: false)
            // The profile or the session has what cannot be used.
            if case .failed(let failure) = trouble, failure.kind == .invalid {
                (self.status, advice) = (.failure, "run \(signIn)")
            }
        case .invalidGrant, .refused:
            self.init(
                .refused, "\(failure)", "check the client's settings, then run \(signIn)")
            if failure.leavesTokens { advice += "; end the session at the provider's own page" }
        case .notSent:
            switch trouble {
            case .notStarted(let reason): self.init(.notStarted(reason), isSignIn: false)
            case .timedOut:
                self.init(
                    .timedOut, "timed out before the provider was asked", "try again with a longer --timeout")
            // The worker's answer to the previous request, when no time was left for another.
            case .failed(let answer) where answer.refreshFailure.kind != .notSent:
                self.init(answer.refreshFailure, trouble, retryAfter: nil, signIn)
            default:
                self.init(
                    .unavailable, "\(failure)",
                    failure.isNotTrusted ? Self.trusting : "check the network and try again")
            }
        case .serverError: self.init(.unavailable, "\(failure)", "try again later")
        case .unusable:
            // An answer arrived, and the token that was sent may be invalid now.
            self.init(
                .timedOut, "\(failure), so its outcome is unknown",
                "try again later: the session may go on; otherwise run \(signIn)")
        case .interrupted:
            switch trouble {
            case .failed, nil:
                self.init(
                    .timedOut, "\(failure), so its outcome is unknown", "try again: the session may go on")
            case let trouble?: self.init(trouble, isSignIn: false)
            }
        case .timedOut:
            self.init(
                .timedOut, "the provider did not answer in time, and the outcome is unknown",
                "try again: the session may go on; with a longer --timeout if there was one")
        }
    }

    /// Creates the failure to report to a provider that tokens are over. The status is `timedOut` when the
    /// report may have arrived, `unavailable` otherwise.
    init(untold trouble: OAuthProgram.WorkerError) {
        let failure = trouble.refreshFailure
        var reason: CommandFailure
        switch trouble {
        case .failed: reason = CommandFailure(.unavailable, "\(failure)", "")
        case .timedOut: reason = CommandFailure(.timedOut, "the provider did not answer in time", "")
        default: reason = CommandFailure(trouble, isSignIn: false)
        }
        reason.status = [.interrupted, .timedOut].contains(failure.kind) ? .timedOut : .unavailable
        reason.advice = "end the session at the provider's own page"
        self = reason
    }

    /// The failure to report a completed sign-out to the provider.
    var afterSigningOut: CommandFailure {
        // The report may have arrived even if no answer came back.
        let revocation = status == .timedOut ? "may not have been revoked" : "were not revoked"
        return CommandFailure(
            status, "signed out here, but the tokens \(revocation) and may stay valid: \(happened)",
            "end the session at the provider's own page")
    }

    /// The failure after revoking the known tokens, when the outcome of the last renewal is unknown.
    static let newerSession = CommandFailure(
        .timedOut,
        "the known tokens were revoked, but the last renewal's outcome is unknown: the provider may have issued "
            + "newer tokens that could not be revoked",
        "end the session at the provider's own page")

    /// The failure when the session ended during a renewal and the tokens of that renewal, if any, did not
    /// arrive.
    static let lostRenewal = CommandFailure(
        .timedOut,
        "the session was ended or replaced meanwhile, and the renewal's outcome is unknown: the provider may have issued "
            + "newer tokens that could not be revoked",
        "end the session at the provider's own page; try again for a token of the current session")

    /// Returns the failure when the provider rejects the token after a renewal whose answer was lost. The
    /// session is over, and the tokens of that renewal are lost.
    static func endedAfterLostRenewal(_ name: String) -> CommandFailure {
        CommandFailure(
            .notFound,
            "the provider rejects the session's token after a renewal whose answer was lost: tokens of that renewal may be "
                + "valid and could not be revoked",
            "end the session at the provider's own page, then run \(signingIn(name))")
    }

    /// Returns the note on a session whose renewal a signal ended before the answer arrived.
    static func endedRenewal(_ name: String) -> String {
        "a renewal was under way, and its outcome is unknown: \(nextTry(name))"
    }

    /// The note on a session that ended here while another program may still wait for newer tokens.
    static let waitedFor =
        "another program was renewing the session, and revokes the new tokens when they arrive. If that program was ended, "
        + "newer tokens may stay valid: end the session at the provider's own page"

    /// Creates the failure when the worker gave no usable answer.
    init(_ trouble: OAuthProgram.WorkerError, isSignIn: Bool) {
        // If the request contained a session's token, the fate of that token is unknown.
        let status = isSignIn ? ExitStatus.unavailable : .timedOut
        switch trouble {
        case .notStarted(let failure):
            let shortages: [Errno] = [
                .resourceTemporarilyUnavailable, .noMemory, .tooManyOpenFiles, .tooManyOpenFilesInSystem,
            ]
            self.init(
                .unavailable, "vaultctl-oauth does not start: \(failure.errno.description)",
                shortages.contains(failure.errno)
                    ? "close other programs or raise the limits (ulimit), and try again"
                    : "install the vaultctl-oauth that belongs to this vaultctl")
        case .ended(let code):
            self.init(
                status, "vaultctl-oauth ended without an answer (exit status \(code))",
                "try again; if it fails again, reinstall vaultctl-oauth")
        case .notAsked: self = .interrupted
        case .interrupted:
            self.init(status, "a signal ended vaultctl-oauth before it answered", "try again")
        case .broken(let failure):
            self.init(
                status, "vaultctl-oauth cannot be read from: \(failure.errno.description)", "try again")
        case .misunderstood:
            self.init(
                status, "vaultctl-oauth gave an unknown answer",
                "install the vaultctl-oauth that belongs to this vaultctl")
        case .timedOut:
            self.init(
                .timedOut,
                isSignIn
                    ? "vaultctl-oauth did not answer in time: the outcome of the sign-in is unknown"
                    : "timed out, and the outcome is unknown",
                "try again, with a longer --timeout if need be")
        case .other(let failure): self = failure
        case .failed(let failure): self.init(failure)
        }
    }

    /// The advice for a refused proof. A proof contains the time.
    private static let checkingClock = "check the clock of this machine, and try again"

    /// Creates the failure to sign a proof for the session of the profile `name`.
    init(unproved trouble: OAuthProgram.WorkerError, _ name: String) {
        self.init(trouble, isSignIn: true)
        switch trouble {
        case .failed(let failure) where failure.kind == .invalid: self = .noKey(name)
        case .timedOut: happened = "vaultctl-oauth did not sign the proof in time"
        default: break
        }
    }

    /// Returns the failure for a session whose tokens are bound to a key that is missing or damaged.
    static func noKey(_ name: String) -> CommandFailure {
        CommandFailure(.failure, "the session's key cannot be used", "run \(signingIn(name))")
    }

    /// Returns the advice for an ID token with this problem, in words (`IDTokenProblem`).
    private static func advice(ofIDToken problem: String) -> String {
        switch problem {
        case "audience", "authorized party":
            "check --client-id; if the token's other client is yours, add --trusted-audience with its ID"
        case "algorithm":
            "have the provider sign with RS256 or ES256, or give the client's secret if it signs with that"
        case "expired", "not yet valid": "check the clock of this machine, and sign in again"
        case "issuer": "check --issuer"
        default: "sign in again"
        }
    }

    /// Creates the failure of a sign-in.
    init(_ failure: WorkerFailure) {
        let detail = failure.detail.map { $0.utf8.count <= 100 ? Self.printable($0) : "it" } ?? "it"
        switch failure.kind {
        case .refused where failure.detail == "invalid_dpop_proof":
            self.init(.refused, failure.refreshFailure.reason, Self.checkingClock)
        case .invalidGrant, .refused:
            self.init(
                .refused, failure.refreshFailure.reason, "check --client-id, the client's secret and --scope")
        case .throttled, .serverError:
            self.init(.unavailable, failure.refreshFailure.reason, "try again later")
        case .notSent where failure.isNotTrusted ?? false:
            self.init(.unavailable, failure.refreshFailure.reason, "check --issuer; \(Self.trusting)")
        case .notSent, .unusable, .interrupted:
            self.init(
                .unavailable, failure.refreshFailure.reason, "check --issuer and the network, and try again")
        case .noAnswer:
            self.init(
                .timedOut, "the provider did not answer in time",
                "try again, with a longer --timeout if need be")
        case .invalidKey:
            self.init(
                .usage, "the client's key cannot be used",
                "use an RSA key of 2,048 bits or more, or a key on P-256, P-384 or P-521")
        case .invalid: self.init(.usage, "\(detail) cannot be used", "check the given value")
        case .issuerWithSlash:
            self.init(
                .unavailable, "the provider's own name has a slash at its end, and --issuer has none",
                "give --issuer with the slash")
        case .issuerWithoutSlash:
            self.init(
                .unavailable, "the provider's own name has no slash at its end, and --issuer has one",
                "give --issuer without the slash")
        case .otherIssuer:
            self.init(
                .unavailable, "the provider at that address has another name than --issuer",
                "give --issuer exactly as \"issuer\" in its metadata, at the given address with "
                    + "/.well-known/openid-configuration at its end")
        case .issuerOfAllTenants:
            self.init(
                .unavailable, "the provider's metadata is for all tenants",
                "give one tenant's --issuer, with its ID in place of {tenantid}")
        case .redirected:
            let address = failure.detail.map(Self.printable) ?? "an address that cannot be used"
            self.init(
                .unavailable, "the provider's metadata has moved to \(address)",
                "give that address as --issuer, without /.well-known/ and what follows")
        case .foreignEndpoint:
            let origin = failure.detail.map(Self.printable)
            self.init(
                .refused,
                "the provider's metadata sends you to \(origin ?? "another address"), not to the issuer's origin",
                origin.map { "if you trust that address, add --allow-origin \($0)" } ?? "check --issuer")
        case .invalidMetadata:
            self.init(
                .unavailable, "\(detail) in the provider's metadata cannot be used", "check --issuer")
        case .unsupported:
            self.init(
                .unavailable, "the provider does not offer \(detail)",
                "check --issuer, or sign in another way")
        case .malformedResponse:
            self.init(
                .unavailable, "\(detail) of the provider's answer cannot be used", "report it to the provider"
            )
        case .accessDenied:
            self.init(.refused, "the sign-in was refused on the provider's page", "sign in again")
        case .authorizationRefused:
            self.init(
                .refused, "the provider refused the sign-in (\(detail))", "check --client-id and --scope")
        case .wrongIssuer, .wrongState:
            self.init(
                .refused, "the answer is from another provider or sign-in",
                "sign in again, but not on that page")
        case .timedOut: self.init(.timedOut, "the sign-in was not completed in time", "sign in again")
        case .cannotListen:
            self.init(
                .unavailable, "the port for the browser's answer could not be opened",
                "stop the program that uses it, change the port of --redirect-uri or --redirect-port (0 for any), or use --device"
            )
        case .invalidIDToken:
            self.init(
                .refused, "the provider's ID token is not accepted (\(detail))",
                Self.advice(ofIDToken: detail))
        case .noIDToken:
            self.init(
                .refused, "the provider's ID token is not accepted (missing)",
                "leave --scope openid out, or have the provider give this client OpenID Connect")
        case .cancelled: self.init(.failure, "cancelled", "sign in again")
        case .notBuilt:
            self.init(
                .unavailable, "vaultctl-oauth was built without sign-in support",
                "build it with \"--traits OAuth\"")
        case .misunderstood:
            self.init(
                .unavailable, "vaultctl-oauth has another version",
                "install the vaultctl-oauth that belongs to this vaultctl")
        }
        if failure.mayLeaveSession ?? false {
            happened += "; the provider may have a session whose tokens were lost"
            advice += "; end such a session at the provider's own page"
        }
        guard failure.leavesTokens ?? false else { return }
        happened += "; the tokens issued meanwhile could not be revoked"
        advice += "; end the session at the provider's own page"
    }
}
