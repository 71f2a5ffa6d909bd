import OAuthWire
import ProgramSupport
import TokenVault
import TokenVaultAuth

/// What the user reads of a renewal's outcome.
struct RenewalReport {
    private let name: String
    private let console: Console

    init(_ name: String, _ console: Console) {
        self.name = name
        self.console = console
    }

    /// Tells why new tokens cannot be stored yet. The user may be able to help.
    func tellOfWaiting(_ error: TokenError) {
        guard case .notSaved(let reason) = error else { return }
        let failure = CommandFailure(reason)
        console.note(
            "the new tokens cannot be stored yet; retrying for up to a minute: "
                + "\(failure.happened): \(failure.advice)")
    }

    /// Returns the tokens, or throws the failure. `isEnded` is whether a signal ends the program.
    func tokens(
        _ outcome: RenewalTransaction<WorkerProvider>.Outcome, isEnded: Bool
    ) throws(CommandFailure) -> TokenInfo {
        if case .success(let tokens) = outcome.tokens { return tokens }
        guard case .failure(let error) = outcome.tokens else { throw .interrupted }
        if let revocation = outcome.revocation {
            console.note(of: revocation, "the tokens of a session that has ended")
        } else if isEnded, outcome.hasUnstored {
            console.note(
                "the new tokens could not be stored and are lost: "
                    + CommandFailure.nextTry(name))
        } else if isEnded, outcome.failure == .interrupted || outcome.mayHaveLost {
            console.note(CommandFailure.endedRenewal(name))
        }
        throw isEnded ? .interrupted : failure(error, of: outcome)
    }

    private func failure(
        _ error: TokenError, of outcome: RenewalTransaction<WorkerProvider>.Outcome
    ) -> CommandFailure {
        if outcome.isOfOtherSource { return .otherSource(name) }
        switch error {
        case .sessionChanged where !outcome.hasUnstored && outcome.mayHaveLost,
            .tokenNotFound where !outcome.hasUnstored && outcome.mayHaveLost:
            return .lostRenewal
        // The provider may have accepted the token in the lost renewal, and may reject it now for that
        // reason.
        case .sessionExpired where outcome.mayHaveLost: return .endedAfterLostRenewal(name)
        case .notSaved(let reason) where reason.code == .timedOut || reason.code == .outcomeUnknown:
            return .notStoredInTime(name)
        default: return CommandFailure(error, outcome.failure, name)
        }
    }
}
