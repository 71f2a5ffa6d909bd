internal import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The token that a caller needs.
struct TokenRequirement: Sendable {
    /// The session that the caller began with.
    let session: String
    /// A rejected access token: the caller needs another one, regardless of the expiry.
    var refused: Secret?
    /// How far this machine's clock was set ahead since the tokens arrived, in seconds.
    var shift: Double
    /// The time when the call began.
    var begun: Date
}
