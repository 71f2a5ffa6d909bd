internal import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// What a caller needs.
struct TokenRequirement: Sendable {
    /// The session that the caller began with.
    let session: String
    /// An access token that was refused, so that another one is needed whatever its expiry says.
    var refused: Secret?
    /// How far this machine's clock was set ahead since the tokens came, in seconds.
    var shift: Double
    /// When the call began.
    var begun: Date
}
