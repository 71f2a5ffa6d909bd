import OAuthWire
import ProgramSupport
import TokenVault
import TokenVaultAuth

/// What the user reads of a sign-in's outcome.
struct SignInReport {
    private let name: String
    private let conversation: SignInConversation
    private let signals: SignalGuard
    private var console: Console { conversation.console }

    init(_ name: String, _ conversation: SignInConversation, _ signals: SignalGuard) {
        self.name = name
        self.conversation = conversation
        self.signals = signals
    }

    /// Returns what the provider gave, if it is stored. Throws the failure otherwise.
    func signedIn(
        _ outcome: SignInTransaction<WorkerProvider>.Outcome
    ) throws(CommandFailure) -> SignedIn {
        switch outcome {
        case .signedIn(let signedIn, let before, let isOtherUser):
            if isOtherUser {
                console.note("this is another user than before: end the session at once if that was not you")
            }
            report(before)
            return signedIn
        case .notAuthorized(let trouble): throw failure(trouble)
        case .notStored(let error, let revocation, let undoing):
            console.note(of: revocation, "what the provider gave")
            throw notStored(error, isRevoked: revocation.isRevoked, undoing)
        case .cancelled(let revocation, let undoing):
            console.note(of: revocation, "what the provider gave")
            if revocation.isRevoked { console.note("what the provider gave was revoked: sign in again") }
            report(undoing)
            throw .interrupted
        }
    }

    private func notStored(
        _ error: TokenError, isRevoked: Bool, _ undoing: SignInTransaction<WorkerProvider>.Undoing
    ) -> CommandFailure {
        var failure = CommandFailure(error, nil, name)
        if failure.mayBeDone {
            failure.happened = "the vault did not say that it has it"
            failure.advice = "see what is the matter with it: \"vaultctl verify\""
            report(undoing)
        }
        let what =
            isRevoked
            ? "what the provider gave could not be stored and was revoked, so sign in again"
            : "that could not be stored"
        failure.happened = "signed in, but \(what): \(failure.happened)"
        failure.cause = nil
        return failure
    }

    private func report(_ undoing: SignInTransaction<WorkerProvider>.Undoing) {
        switch undoing {
        case .done: break
        case .underWay:
            console.note(
                "it may be stored all the same when the vault answers: \(CommandFailure.signingIn(name)) signs in again"
            )
        case .failed(let error):
            console.note(
                "what was revoked was stored meanwhile, and is there still (\(CommandFailure(error, nil, name).happened)): "
                    + "\(CommandFailure.signingIn(name)) signs in again; the session before may go on at the provider"
            )
        }
    }

    private func report(_ before: SignInTransaction<WorkerProvider>.Previous) {
        switch before {
        case .none, .kept: break
        case .foreign:
            console.note(
                "the session before is not of this provider, which is not told: it may go on there")
        case .ended(let revocation, let newer):
            if case .awaited = newer, revocation.isOffered {
                console.note("of the sign-in before: \(CommandFailure.waitedFor)")
            }
            console.note(of: revocation, "what the provider gave at the sign-in before")
            if case .lost = newer, revocation.isRevoked {
                let reason = CommandFailure.newerSession
                console.note("of the sign-in before, \(reason.happened): \(reason.advice)")
            }
        }
    }

    /// Returns the failure of a sign-in for which the provider gave no tokens.
    private func failure(_ trouble: OAuthProgram.WorkerError) -> CommandFailure {
        if signals.signal != nil {
            switch trouble {
            case .failed(let failure) where failure.leavesTokens ?? false:
                console.note(
                    "what the provider gave may be good until it expires, since the provider was not told")
            case .failed(let failure) where failure.mayLeaveSession ?? false:
                console.note(Self.unknown)
            case .failed, .notStarted, .notAsked: break
            default: console.note(Self.unknown)
            }
            return .interrupted
        }
        // A worker that waits in vain reports a timeout itself, before this limit.
        if trouble == .timedOut {
            return CommandFailure(
                .timedOut, "vaultctl-oauth did not answer in time",
                "\(Self.unknown); end the session at the provider's own page, and sign in again")
        }
        // Without an address, the user could not sign in. Whether the request or the whole sign-in took too long first
        // makes no difference then.
        if conversation.options == nil, case .failed(let failure) = trouble,
            failure.kind == .timedOut || failure.kind == .noAnswer
        {
            return CommandFailure(
                .timedOut, "the provider did not answer in time",
                "check --issuer and the network, and try again, with a longer --timeout if need be")
        }
        guard let options = conversation.options, case .failed(let failure) = trouble,
            failure.kind == .timedOut
        else {
            var reason = CommandFailure(trouble, isSignIn: true)
            switch trouble {
            case .ended, .misunderstood, .broken:
                // The user saw the address and may have signed in there.
                guard conversation.options != nil else { break }
                reason.happened += "; \(Self.unknown)"
                reason.advice += "; end such a session at the provider's own page"
            default: break
            }
            return reason
        }
        var reason = CommandFailure(failure)
        reason.advice += "; if the page showed a mistake, check \(options) first"
        return reason
    }

    private static let unknown = "the provider may have given tokens that are lost"
}

extension Console {
    /// Prints a note unless tokens were revoked. `what` is the subject of the sentence.
    func note(of revocation: Revocation<OAuthProgram.WorkerError>, _ what: String) {
        switch revocation {
        case .revoked: break
        case .notOffered: note("\(what) is good until it expires: the provider has no way to be told")
        case .failed(let trouble):
            let reason = CommandFailure(untold: trouble)
            note("\(what) may be good until it expires, since the provider was not told: \(reason.happened)")
        }
    }
}
