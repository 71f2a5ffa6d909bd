import ProgramSupport
import TokenVault

extension CommandFailure {
    /// A signal arrived. The signal takes effect after the cleanup.
    static let interrupted = CommandFailure(.failure, "interrupted", "try again")

    /// Creates the failure for an error of the backend `name`.
    init(_ error: TokenStorageError, _ name: String) {
        let underlying = error.underlying.map { " (\($0))" } ?? ""
        self.init(
            ExitStatus(error.code), "\(name): \(error.code.summary)\(underlying)",
            error.advice ?? error.code.nextStep)
        // The user did not start this agent and cannot unlock its vault.
        if name == BackendName.agent, [.locked, .unavailable].contains(error.code) {
            advice = "the agent that was started to be measured has ended: try again"
        }
        cause = error
    }
}

/// Runs `body` and converts its errors into failures of the backend `name`.
func calling<Value>(
    _ name: String, _ body: () throws(TokenStorageError) -> Value
) throws(CommandFailure) -> Value {
    do { return try body() } catch { throw CommandFailure(error, name) }
}
