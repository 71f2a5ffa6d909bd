internal import Synchronization
public import TokenVaultCore

extension BlockingFileVault {
    /// The rule by which the vault locks itself; `nil` when it does not.
    public var automaticLock: AutomaticLock? { isInherited ? nil : lockDeadline.rule }

    /// Sets the rule by which the vault locks itself, as ``lock()`` does; `nil` for never. In an unlocked
    /// vault, the time counts from now. Keys are wiped when the time has come, even if the vault is not used
    /// then. A lock that came due while the machine was suspended happens when it wakes up, and no call finds
    /// the vault unlocked. An operation that is under way at that moment may end with `locked`. Throws
    /// `closed`, and `invalidArgument` for a duration that is not above zero. Throws `resourcesExhausted`
    /// when there is no thread or timer for it: an unlocked vault is locked then.
    public func lockAutomatically(_ rule: AutomaticLock?) throws(TokenStorageError) {
        try during("lock") { () throws(TokenStorageError) in
            try checkUsable()
            try rule?.check()
            lockDeadline.set(rule)
            do throws(TokenStorageError) {
                try startTimer()
            } catch {
                lock()
                throw error
            }
        }
    }

    /// Counts the time until the vault locks itself from now on. Call it before keys are held.
    func beginCounting() throws(TokenStorageError) {
        lockDeadline.begin()
        try startTimer()
    }

    /// Counts the time from now on that keys are held: a lock, or the end of the time, may have come just
    /// before.
    func countAgain() throws(TokenStorageError) {
        do throws(TokenStorageError) {
            try beginCounting()
        } catch {
            lock()
            throw error
        }
    }

    private func startTimer() throws(TokenStorageError) {
        let deadline = lockDeadline
        guard deadline.rule != nil else { return }
        try deadline.timer.add(ObjectIdentifier(deadline)) { [weak self] in
            self?.lockIfDue()
            return self == nil ? nil : deadline.deadline
        }
    }

    /// Locks the vault if its time has come.
    func lockIfDue(asUse isUse: Bool = false) {
        lockDeadline.lockIfDue(asUse: isUse) { state.withLock { $0.session }?.ring.lock(byItself: true) }
    }
}
