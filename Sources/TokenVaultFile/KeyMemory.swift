internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The memory in which this process keeps the keys of the vaults it has unlocked.
///
/// The memory is a few pages between guards, left out of core dumps and not passed on to a forked child.
/// ``protection`` reports the rest that the system grants. Locking or closing a vault wipes its keys.
public enum KeyMemory {
    /// The protection that keeps keys from being found outside this process.
    public enum Protection: String, Sendable {
        /// No protection: the system refused to lock the pages (`ulimit -l`), and they can be written to
        /// swap.
        case unlocked
        /// `mlock(2)`: the pages are never written to swap.
        case locked
        /// `memfd_secret(2)`: the pages are never written to swap, and the kernel itself cannot reach them.
        case secret
    }

    /// The least protection of the existing keys, or the one that the system would grant a first key; `nil`
    /// without memory for keys.
    public static var protection: Protection? {
        switch try? KeyArena.shared.protection() {
        case .unlocked: .unlocked
        case .locked: .locked
        case .secret: .secret
        case nil: nil
        }
    }

    /// Places keys made from now on in memory of `memfd_secret(2)`, where the kernel has that. That is Linux
    /// 5.14 and later, from 6.5 on unless it was started with `secretmem.enable=0`. Elsewhere nothing
    /// changes.
    ///
    /// This is not the default: while a process has such memory, the machine does not hibernate. Call it
    /// before the first vault is unlocked; existing keys stay where they are.
    public static func preferSecretMemory() { KeyArena.shared.wantSecretPages() }
}
