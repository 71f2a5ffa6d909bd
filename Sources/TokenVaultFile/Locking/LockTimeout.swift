internal import TokenVaultCore
internal import TokenVaultPlatform

/// The time that a call waits for other processes: a while from the beginning of the wait, and never past a
/// deadline.
struct LockTimeout: Sendable {
    let duration: Duration
    let end: Deadline?

    /// The longest time for a wait that begins now.
    var remaining: Duration { min(duration, end?.remaining ?? duration) }

    /// No waiting.
    static let zero = LockTimeout(duration: .zero, end: nil)
}

extension Deadline {
    /// Creates the timeout of a call that begins to wait now.
    init(after timeout: LockTimeout) {
        self.init(after: timeout.remaining)
    }
}

extension Deadline? {
    /// Throws `timedOut` when the deadline has passed. For long work, between its parts.
    func check(_ reason: TokenStorageError.Reason? = nil) throws(TokenStorageError) {
        guard let self, self.hasPassed else { return }
        throw .file(.timedOut, reason)
    }
}

extension FileVaultConfiguration {
    /// The time that calls wait.
    var lockLimit: LockTimeout { LockTimeout(duration: lockTimeout, end: deadline) }
}
