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
    /// The reason.
    public var code: Code
    /// What was being done: `store`, `unlock`, `verify` …
    public var operation: String
    /// Which backend: `file`, `memory`, `secret-service` …
    public var backend: String
    /// What the system said (`fdatasync: Input/output error`), where that helps.
    public var underlying: String?
    /// What to do next, or where the damage is, in words for a person.
    public var advice: String?
    /// For ``Code/conflict``: the generation the key has, `nil` when it is absent. For
    /// ``Code/outcomeUnknown``: the generation that the write has if it happened.
    public var generation: Generation?
    /// Whether what is not available was there a moment ago, or is known and did not start: it may hold what is
    /// looked for.
    var mayBeBack = false

    /// An error. Backends make these.
    public init(
        _ code: Code, operation: String, backend: String, underlying: String? = nil,
        advice: String? = nil, generation: Generation? = nil
    ) {
        self.code = code
        self.operation = operation
        self.backend = backend
        self.underlying = underlying
        self.advice = advice
        self.generation = generation
    }
}
