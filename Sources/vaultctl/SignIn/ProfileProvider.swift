import OAuthWire
import ProgramSupport
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

/// The provider of a profile, as the client that the profile names. No thread or task is needed: whoever asks waits.
struct ProfileProvider: Sendable {
    let profile: LoginProfile
    let program: OAuthProgram
    /// When the command has to have ended.
    let deadline: Deadline?

    /// How long a request may take when nobody said, in seconds.
    static let usualLimit = 25.0

    /// What is asked of it. The other program gives up a little before this one does, so that what it has to say still comes.
    func message(
        _ operation: WorkerRequest.Operation, atMost limit: Double = usualLimit
    ) -> WorkerRequest {
        let left = deadline?.remaining.inSeconds ?? limit
        return profile.request(operation, seconds: min(limit, max(left * 0.9, left - 1)))
    }

    /// What it answers. Throws ``OAuthProgram/Trouble``.
    func ask(
        _ message: WorkerRequest, interruption: SignalGuard? = nil
    ) throws(OAuthProgram.WorkerError) -> WorkerReply {
        // Not for ever, whatever the other program does.
        let limit = Duration.seconds(message.seconds + 4)
        return try program.ask(
            message, until: Deadline(after: min(limit, deadline?.remaining ?? limit)),
            interruption: interruption)
    }

    /// Tells it that `tokens`, which it gave, are over. Throws ``OAuthProgram/Trouble``.
    func revoke(
        _ tokens: TokenInfo, atMost limit: Double = usualLimit, interruption: SignalGuard? = nil
    ) throws(OAuthProgram.WorkerError) {
        var message = message(.revoke, atMost: limit)
        message.accessToken = tokens.accessToken
        message.refreshToken = tokens.refreshToken
        guard case .revoked = try ask(message, interruption: interruption) else { throw .misunderstood }
    }

    /// The same, of tokens that nobody has any more: within a few seconds, which there are also when the command should have
    /// ended, or a signal came, and whatever keeps it from being told is said. Whether it was told.
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
