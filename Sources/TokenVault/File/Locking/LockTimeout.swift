internal import TokenVaultPlatform

/// How long a call waits for other processes: a while from when it begins to, and never past a point in time.
struct LockTimeout: Sendable {
    let duration: Duration
    let end: Deadline?

    /// How long a wait that begins now may take.
    var remaining: Duration { min(duration, end?.remaining ?? duration) }

    /// Not at all.
    static let zero = LockTimeout(duration: .zero, end: nil)
}

extension Deadline {
    /// For a call that begins to wait now.
    init(after timeout: LockTimeout) {
        self.init(after: timeout.remaining)
    }
}

extension Deadline? {
    /// Throws `timedOut` when there is one and it has passed. For long work, between its parts.
    func check(_ reason: TokenStorageError.Reason? = nil) throws(TokenStorageError) {
        guard let self, self.hasPassed else { return }
        throw .file(.timedOut, reason)
    }
}

extension FileVaultConfiguration {
    /// How long calls wait.
    var lockLimit: LockTimeout { LockTimeout(duration: lockTimeout, end: deadline) }
}
