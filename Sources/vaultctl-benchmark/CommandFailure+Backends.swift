import ProgramSupport
import TokenVault

extension CommandFailure {
    /// A signal came, which is to have its effect when everything is cleared away.
    static let interrupted = CommandFailure(.failure, "interrupted", "try again")

    /// The failure for an error of the backend `name`.
    init(_ error: TokenStorageError, _ name: String) {
        let underlying = error.underlying.map { " (\($0))" } ?? ""
        self.init(
            ExitStatus(error.code), "\(name): \(error.code.summary)\(underlying)",
            error.advice ?? error.code.nextStep)
        // It is none that a person started, or could unlock.
        if name == BackendName.agent, [.locked, .unavailable].contains(error.code) {
            advice = "the agent that was started to be measured has ended: try again"
        }
        cause = error
    }
}

/// Runs `body`, whose errors are those of the backend `name`.
func calling<Value>(
    _ name: String, _ body: () throws(TokenStorageError) -> Value
) throws(CommandFailure) -> Value {
    do { return try body() } catch { throw CommandFailure(error, name) }
}
