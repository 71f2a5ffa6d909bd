internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The memory in which this process keeps the keys of the vaults it has unlocked.
///
/// A few pages between guards, left out of core dumps and not passed on to a forked child. What else the
/// system grants is told by ``protection``. Keys are wiped when the vault is locked or closed.
public enum KeyMemory {
    /// What keeps keys from being found elsewhere than in this process.
    public enum Protection: String, Sendable {
        /// Nothing: the system refused to lock the pages (`ulimit -l`), and they can be written to swap.
        case unlocked
        /// `mlock(2)`: they are never written to swap.
        case locked
        /// `memfd_secret(2)`: likewise, and the kernel itself has no way to them.
        case secret
    }

    /// What the system granted for the keys there are, the least of it, or would grant for the first one;
    /// `nil` when it has no memory for any.
    public static var protection: Protection? {
        switch try? KeyArena.shared.protection() {
        case .unlocked: .unlocked
        case .locked: .locked
        case .secret: .secret
        case nil: nil
        }
    }

    /// Keys that are made from now on lie in memory of `memfd_secret(2)`, where the kernel has that: Linux
    /// 5.14 and later, from 6.5 on unless it was started with `secretmem.enable=0`. Elsewhere nothing changes.
    ///
    /// Not the default: while a process has such memory, the machine does not hibernate. To be called before
    /// the first vault is unlocked; keys that are there already stay where they are.
    public static func preferSecretMemory() { KeyArena.shared.wantSecretPages() }
}
