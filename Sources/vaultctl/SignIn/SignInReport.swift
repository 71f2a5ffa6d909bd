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
                console.note(
                    "the user differs from that of the previous sign-in: if this is unexpected, end the session at once"
                )
            }
            report(before)
            return signedIn
        case .notAuthorized(let trouble): throw failure(trouble)
        case .notStored(let error, let revocation, let undoing):
            console.note(of: revocation, "the issued tokens")
            throw notStored(error, isRevoked: revocation.isRevoked, undoing)
        case .cancelled(let revocation, let undoing):
            console.note(of: revocation, "the issued tokens")
            if revocation.isRevoked { console.note("the issued tokens were revoked: sign in again") }
            report(undoing)
            throw .interrupted
        }
    }

    private func notStored(
        _ error: TokenError, isRevoked: Bool, _ undoing: SignInTransaction<WorkerProvider>.Undoing
    ) -> CommandFailure {
        var failure = CommandFailure(error, nil, name)
        if failure.mayBeDone {
            failure.happened = "the vault did not confirm the change"
            failure.advice = "check the vault with \"vaultctl verify\""
            report(undoing)
        }
        let what =
            isRevoked
            ? "the tokens could not be stored and were revoked, so sign in again"
            : "the tokens could not be stored"
        failure.happened = "signed in, but \(what): \(failure.happened)"
        failure.cause = nil
        return failure
    }

    private func report(_ undoing: SignInTransaction<WorkerProvider>.Undoing) {
        switch undoing {
        case .done: break
        case .underWay:
            console.note(
                "the session may still be stored when the vault answers: run \(CommandFailure.signingIn(name)) to sign in again"
            )
        case .failed(let error):
            console.note(
                "the revoked tokens are still in the vault (\(CommandFailure(error, nil, name).happened)): "
                    + "run \(CommandFailure.signingIn(name)); the previous session may stay valid at the provider"
            )
        }
    }

    private func report(_ before: SignInTransaction<WorkerProvider>.Previous) {
        switch before {
        case .none, .kept: break
        case .foreign:
            console.note(
                "the previous session belongs to another provider and was not revoked: it may stay valid there"
            )
        case .ended(let revocation, let newer):
            if case .awaited = newer, revocation.isOffered {
                console.note("previous sign-in: \(CommandFailure.waitedFor)")
            }
            console.note(of: revocation, "the tokens of the previous sign-in")
            if case .lost = newer, revocation.isRevoked {
                let reason = CommandFailure.newerSession
                console.note("previous sign-in: \(reason.happened): \(reason.advice)")
            }
        }
    }

    /// Returns the failure of a sign-in for which the provider gave no tokens.
    private func failure(_ trouble: OAuthProgram.WorkerError) -> CommandFailure {
        if signals.signal != nil {
            switch trouble {
            case .failed(let failure) where failure.leavesTokens ?? false:
                console.note(
                    "the issued tokens may be valid until they expire, because they were not revoked")
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
        reason.advice += "; if the page showed an error, check \(options) first"
        return reason
    }

    private static let unknown = "the provider may have issued tokens that were lost"
}

extension Console {
    /// Prints a note unless tokens were revoked. `what` is the subject of the sentence.
    func note(of revocation: Revocation<OAuthProgram.WorkerError>, _ what: String) {
        switch revocation {
        case .revoked: break
        case .notOffered: note("\(what) are valid until they expire: the provider offers no revocation")
        case .failed(let trouble):
            let reason = CommandFailure(untold: trouble)
            note("\(what) may be valid until they expire, because they were not revoked: \(reason.happened)")
        }
    }
}
