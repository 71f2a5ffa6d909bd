/// Why a call failed. Catch by code:
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
    /// What kind of failure it is.
    public var code: Code
    /// What was being done: `store`, `unlock`, `verify` …
    public var operation: String
    /// Which backend: `file`, `memory`, `secret-service` …
    public var backend: String
    /// What led to it, where the code does not say it all.
    public var reason: Reason?
    /// For ``Code/conflict``: the generation the key has, `nil` when it is absent. For
    /// ``Code/outcomeUnknown``: the generation that the write has if it happened.
    public var generation: Generation?

    /// An error of `code` in `operation`, for `reason`. Backends make these; one of the caller's own gives
    /// ``Reason/other(explanation:advice:)``.
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

    /// What the system said (`fdatasync: Input/output error`), where that helps.
    public var underlying: String? { reason?.text(code).explanation }

    /// What to do next, or where the damage is, in words for a person.
    public var advice: String? { reason?.text(code).advice }

    /// Whether what is unavailable may return: a vault that is missing, a service that ended. It may hold the items.
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
