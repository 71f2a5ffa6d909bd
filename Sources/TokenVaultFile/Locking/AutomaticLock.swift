internal import TokenVaultCore
internal import TokenVaultPlatform

/// The rule by which a vault locks itself. The time includes suspension of the machine (`CLOCK_BOOTTIME`);
/// the wall clock does not matter.
public struct AutomaticLock: Hashable, Sendable {
    enum Beginning: Hashable, Sendable { case unlock, use }

    let beginning: Beginning
    let duration: Duration

    /// Returns the rule to lock when nothing was read, listed or written for `duration` through this handle.
    /// Asking for the state is no use.
    public static func whenIdle(for duration: Duration) -> AutomaticLock {
        AutomaticLock(beginning: .use, duration: duration)
    }

    /// Returns the rule to lock `duration` after the unlock, however much the vault is used.
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
