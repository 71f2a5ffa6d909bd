/// The failure of a call. Catch by code:
///
/// ```swift
/// do {
///     token = try await storage.retrieve(for: "access_token")
/// } catch TokenStorageError.Code.locked {
///     // ask the user to unlock
/// } catch {
///     throw error
/// }
/// ```
///
/// Keep the last clause: without it, the compiler of Swift 6.3 crashes on some functions that throw
/// `any Error`.
///
/// An error never carries a key, a secret, a label or an attribute.
public struct TokenStorageError: Error, Sendable, Equatable {
    /// The kind of failure.
    public var code: Code
    /// The operation that failed: `store`, `unlock`, `verify` …
    public var operation: String
    /// The backend: `file`, `memory`, `secret-service` …
    public var backend: String
    /// The cause of the failure, where the code does not say it all.
    public var reason: Reason?
    /// The generation of the key. For ``Code/conflict``: its present generation, `nil` when the key is
    /// absent. For ``Code/outcomeUnknown``: the generation that the write has if it happened.
    public var generation: Generation?

    /// Creates an error of `code` in `operation`, for `reason`. Backends make these errors; a backend outside
    /// this package gives ``Reason/other(explanation:advice:)``.
    public init(
        _ code: Code, operation: String, backend: String, reason: Reason? = nil,
        generation: Generation? = nil
    ) {
        self.code = code
        self.operation = operation
        self.backend = backend
        self.reason = reason
        self.generation = generation
    }

    /// The system's explanation (`fdatasync: Input/output error`), where that helps.
    public var underlying: String? { reason?.text(code).explanation }

    /// The next step, or the place of the damage, in words for the user.
    public var advice: String? { reason?.text(code).advice }

    /// Whether a missing vault or an ended service may return. It may hold the items.
    var mayReturn: Bool {
        switch reason {
        case .vaultMissing, .serviceDidNotStart, .serviceEnded, .keyring(.busLost): true
        case .changedMeanwhile(.keyringItems), .changedMeanwhile(.keyringCommits),
            .changedMeanwhile(.keyringReplaced), .changedMeanwhile(.keyringSession):
            true
        default: false
        }
    }
}
