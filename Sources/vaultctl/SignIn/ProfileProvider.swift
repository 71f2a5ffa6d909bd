import OAuthWire
import ProgramSupport
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

/// The provider of a profile, used as the profile's client. Calls block their caller, so no thread or task is
/// needed.
struct ProfileProvider: Sendable {
    let profile: LoginProfile
    let program: OAuthProgram
    /// The deadline of the command.
    let deadline: Deadline?

    /// The default time limit of a request, in seconds.
    static let usualLimit = 25.0

    /// Returns a request to the provider. Its time limit is a little shorter than that of this program, so
    /// that the worker's answer still arrives.
    func message(
        _ operation: WorkerRequest.Operation, atMost limit: Double = usualLimit
    ) -> WorkerRequest {
        let left = deadline?.remaining.inSeconds ?? limit
        return profile.request(operation, seconds: min(limit, max(left * 0.9, left - 1)))
    }

    /// Sends a request and returns the reply. Throws ``OAuthProgram/WorkerError``.
    func ask(
        _ message: WorkerRequest, interruption: SignalGuard? = nil
    ) throws(OAuthProgram.WorkerError) -> WorkerReply {
        // The limit applies even if the worker does not keep its own limit.
        let limit = Duration.seconds(message.seconds + 4)
        return try program.ask(
            message, until: Deadline(after: min(limit, deadline?.remaining ?? limit)),
            interruption: interruption)
    }

    /// Revokes `tokens` at the provider, which issued them. Throws ``OAuthProgram/WorkerError``.
    func revoke(
        _ tokens: TokenInfo, atMost limit: Double = usualLimit, interruption: SignalGuard? = nil
    ) throws(OAuthProgram.WorkerError) {
        var message = message(.revoke, atMost: limit)
        message.accessToken = tokens.accessToken
        message.refreshToken = tokens.refreshToken
        guard case .revoked = try ask(message, interruption: interruption) else { throw .misunderstood }
    }

    /// Revokes tokens that nothing stores. Returns whether the provider confirmed the revocation; otherwise a
    /// note gives the reason.
    ///
    /// The call takes a few seconds at most, and gets them even after the command's deadline or a signal.
    @discardableResult
    func revokeUnused(
        _ tokens: TokenInfo, _ what: String, _ console: Console, _ interruption: SignalGuard
    ) -> Bool {
        guard profile.offersRevocation else {
            console.note("\(what) is good until it expires: the provider has no way to be told")
            return false
        }
        let least = Duration.seconds(3)
        let end = deadline.map { $0.remaining < least ? Deadline(after: least) : $0 }
        do throws(OAuthProgram.WorkerError) {
            try ProfileProvider(profile: profile, program: program, deadline: end).revoke(
                tokens, atMost: interruption.signal == nil ? 10 : 5, interruption: interruption)
            return true
        } catch {
            let reason = CommandFailure(untold: error)
            console.note(
                "\(what) may be good until it expires, since the provider was not told: \(reason.happened)")
            return false
        }
    }
}

extension Duration {
    /// The duration in seconds.
    var inSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1_000_000_000_000_000_000
    }
}
