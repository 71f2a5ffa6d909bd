internal import TokenVaultPlatform

/// When a vault locks itself. Time counts that the machine spends suspended (`CLOCK_BOOTTIME`); the wall clock has no
/// say.
public struct AutomaticLock: Hashable, Sendable {
    enum Beginning: Hashable, Sendable { case unlock, use }

    let beginning: Beginning
    let duration: Duration

    /// When nothing was read, listed or written for `duration`, by whoever uses this handle. Asking for the state
    /// is no use.
    public static func whenIdle(for duration: Duration) -> AutomaticLock {
        AutomaticLock(beginning: .use, duration: duration)
    }

    /// `duration` after the unlock, however much it is used.
    public static func after(_ duration: Duration) -> AutomaticLock {
        AutomaticLock(beginning: .unlock, duration: duration)
    }

    /// Throws `invalidArgument` for a duration that is not above zero.
    func check() throws(TokenStorageError) {
        guard duration > .zero else {
            throw .file(.invalidArgument, .limit(.lockInterval))
        }
    }

    /// The duration in nanoseconds, a century at most.
    var nanoseconds: UInt64 { min(duration, .seconds(3_155_760_000)).nanoseconds }
}
