import OAuthWire
import SystemPackage
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

extension CommandFailure {
    static let notSignedIn = CommandFailure(
        .notFound, "nobody is signed in there", "\"vaultctl login PROFILE\"")

    /// Why there is no token. `trouble` is what the last request came to, which the manager sees only in part.
    init(_ error: TokenError, _ trouble: OAuthProgram.Trouble?) {
        switch error {
        case .tokenNotFound: self = .notSignedIn
        case .refreshTokenMissing, .refreshTokenExpired, .sessionExpired:
            let reason =
                error == .sessionExpired ? "the provider has ended the session" : "the session has expired"
            self.init(.notFound, reason, "\"vaultctl login PROFILE\" signs in again")
        case .refreshFailed(let failure, let time): self.init(failure, trouble, retryAfter: time)
        case .sessionChanged:
            self.init(.conflict, "somebody signed in or out meanwhile", "ask again")
        case .notSaved(let reason):
            self.init(reason)
            happened = "the provider gave new tokens, and they could not be stored: \(happened)"
        case .storage(let reason): self.init(reason)
        case .unknownRecord:
            self.init(
                .unavailable, "what is stored is no session that this program knows",
                "use the newer program, or \"vaultctl login PROFILE\"")
        case .malformed(let what):
            self.init(.failure, "\(what) that the provider gave cannot be used", "tell the provider")
        case .notRevoked(let failure):
            var reason = CommandFailure(failure, trouble, retryAfter: nil)
            reason.happened =
                "signed out here, but the provider was not told, and may go on accepting what it gave: \(reason.happened)"
            reason.advice = "end the session at the provider's own page"
            self = reason
        case .timedOut:
            self.init(
                .timedOut, "timed out waiting for the new token", "try again with a longer --timeout")
        case .cancelled: self.init(.failure, "cancelled", "try again")
        }
    }

    /// Why a request with a session's tokens did not succeed.
    private init(_ failure: RefreshFailure, _ trouble: OAuthProgram.Trouble?, retryAfter: Date?) {
        switch failure.kind {
        case .throttled:
            let time = retryAfter.map { " before \(Timestamp.text($0))" } ?? " yet"
            self.init(
                .unavailable, "the last attempt failed, and the provider is not to be asked\(time)",
                "try again then")
        case .refused("cannot_ask"):
            guard let trouble else { fallthrough }
            self.init(trouble, isSignIn: false)
        case .invalidGrant, .refused:
            self.init(
                .refused, "\(failure)",
                "check the client's settings; \"vaultctl login PROFILE\" signs in again")
        case .notSent:
            if let trouble, case .notStarted = trouble {
                self.init(trouble, isSignIn: false)
            } else {
                self.init(.unavailable, "\(failure)", "check the network and try again")
            }
        case .serverError: self.init(.unavailable, "\(failure)", "try again later")
        case .interrupted:
            if let trouble, case .failed = trouble {
                self.init(
                    .timedOut, "\(failure), so its outcome is unknown", "try again: the session may go on")
            } else if let trouble {
                self.init(trouble, isSignIn: false)
            } else {
                self.init(
                    .timedOut, "\(failure), so its outcome is unknown", "try again: the session may go on")
            }
        }
    }

    /// Why the program that sends requests gave no answer that can be used.
    init(_ trouble: OAuthProgram.Trouble, isSignIn: Bool) {
        // With a session's token on its way, what became of that is not known.
        let status = isSignIn ? ExitStatus.unavailable : .timedOut
        switch trouble {
        case .notStarted(let failure):
            self.init(
                .unavailable, "vaultctl-oauth does not start: \(failure.errno.description)",
                "install it anew, the one that belongs to this vaultctl")
        case .ended(let code):
            self.init(
                status, "vaultctl-oauth ended without an answer (exit status \(code))",
                "try again; if that stays so, install it anew")
        case .misunderstood:
            self.init(
                status, "vaultctl-oauth said what this program does not understand",
                "install the one that belongs to this vaultctl")
        case .timedOut:
            self.init(
                .timedOut, isSignIn ? "nobody signed in in time" : "timed out, and the outcome is unknown",
                "try again, with a longer --timeout if need be")
        case .other(let failure): self = failure
        case .failed(let failure): self.init(failure)
        }
    }

    /// Why a sign-in did not succeed.
    init(_ failure: WorkerFailure) {
        let detail = failure.detail.map { $0.utf8.count <= 100 ? Self.printable($0) : "it" } ?? "it"
        switch failure.kind {
        case .invalidGrant, .refused:
            self.init(
                .refused, "\(failure.refreshFailure)", "check --client-id, the client's secret and --scope")
        case .throttled, .serverError:
            self.init(.unavailable, "\(failure.refreshFailure)", "try again later")
        case .notSent, .interrupted:
            self.init(
                .unavailable, "\(failure.refreshFailure)", "check --issuer and the network, and try again")
        case .invalid: self.init(.usage, "\(detail) cannot be used", "check what was given")
        case .invalidMetadata:
            self.init(.unavailable, "\(detail) in the provider's metadata cannot be used", "check --issuer")
        case .unsupported:
            self.init(
                .unavailable, "the provider does not offer \(detail)",
                "check --issuer, or sign in another way")
        case .malformedResponse:
            self.init(.unavailable, "\(detail) of the provider's answer cannot be used", "tell the provider")
        case .accessDenied: self.init(.refused, "the sign-in was refused by the person", "sign in again")
        case .authorizationRefused:
            self.init(
                .refused, "the provider refused the sign-in (\(detail))", "check --client-id and --scope")
        case .wrongIssuer, .wrongState:
            self.init(.refused, "somebody else answered than was asked", "sign in again, and not there")
        case .timedOut: self.init(.timedOut, "nobody signed in in time", "sign in again")
        case .cannotListen:
            self.init(
                .unavailable, "no port of this machine could be listened on",
                "give another --redirect-port, or sign in with --device")
        case .invalidIDToken:
            self.init(.refused, "the provider's ID token is not accepted (\(detail))", "sign in again")
        case .cancelled: self.init(.failure, "cancelled", "sign in again")
        case .notBuilt:
            self.init(
                .unavailable, "vaultctl-oauth was built without what signing in needs",
                "build it with \"--traits OAuth\"")
        case .misunderstood:
            self.init(
                .unavailable, "vaultctl-oauth is of another version",
                "install the one that belongs to this vaultctl")
        }
    }
}
