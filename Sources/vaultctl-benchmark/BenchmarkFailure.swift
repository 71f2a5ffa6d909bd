import SystemPackage
import TokenVault
import TokenVaultPlatform

/// Why there are no figures: the exit status and the one line on standard error, as `vaultctl` says them.
struct BenchmarkFailure: Error {
    var status: Int32
    var happened: String
    var advice: String

    init(_ status: Int32, _ happened: String, _ advice: String) {
        self.status = status
        self.happened = happened
        self.advice = advice
    }

    /// A signal came, which is to have its effect when everything is cleared away.
    static let interrupted = BenchmarkFailure(1, "interrupted", "try again")

    /// What an error of the backend `name` means.
    init(_ error: TokenStorageError, _ name: String) {
        let underlying = error.underlying.map { " (\($0))" } ?? ""
        let status: Int32 =
            switch error.code {
            case .locked: 4
            case .notPermitted, .wrongPassphrase: 5
            case .corrupt, .rolledBack, .forked, .unexpectedVault: 7
            case .unavailable, .insecurePermissions: 8
            case .conflict, .alreadyExists: 9
            case .timedOut, .outcomeUnknown: 10
            default: 1
            }
        self.init(
            status, "\(name): \(error.code.summary)\(underlying)", error.advice ?? error.code.nextStep)
        // It is none that a person started, or could unlock.
        if name == BackendName.agent, [.locked, .unavailable].contains(error.code) {
            advice = "the agent that was started to be measured has ended: try again"
        }
    }

    /// What a failed system call means, having been about `subject`.
    init(_ failure: SystemFailure, _ subject: String, _ advice: String) {
        self.init(1, "\(subject): \(failure.errno.description)", advice)
    }

    /// The line, without control characters: advice can name paths.
    var line: String {
        let text = "vaultctl: \(happened): \(advice)"
        return String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { $0.value < 0x20 || (0x7f...0x9f).contains($0.value) ? "?" : $0 }))
    }
}

/// `body`, whose errors are those of the backend `name`.
func calling<Value>(
    _ name: String, _ body: () throws(TokenStorageError) -> Value
) throws(BenchmarkFailure) -> Value {
    do { return try body() } catch { throw BenchmarkFailure(error, name) }
}
