internal import Synchronization

extension BlockingFileVault {
    /// When the vault locks itself; `nil` when it does not.
    public var automaticLock: AutomaticLock? { isInherited ? nil : lockDeadline.rule }

    /// Says when the vault locks itself, as ``lock()`` does, counted from now if it is unlocked; `nil` for never. Keys
    /// are wiped when the time has come, also when nobody uses the vault then; what came due while the machine was
    /// suspended is locked when it wakes up, and no call finds it unlocked. An operation that is under way at that
    /// moment may end with `locked`. Throws `invalidArgument` for a duration that is not above zero,
    /// `resourcesExhausted` when there is no thread or timer for it: an unlocked vault is locked then. And `closed`.
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

    /// The time until the vault locks itself counts from now on. To be called before keys are held.
    func beginCounting() throws(TokenStorageError) {
        lockDeadline.begin()
        try startTimer()
    }

    /// The time counts from now on that keys are held: a lock, or the end of the time, may have come just before.
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

extension FileVault {
    /// See ``BlockingFileVault/automaticLock``.
    public var automaticLock: AutomaticLock? { blocking.automaticLock }

    /// See ``BlockingFileVault/lockAutomatically(_:)``.
    public func lockAutomatically(_ rule: AutomaticLock?) throws(TokenStorageError) {
        try blocking.lockAutomatically(rule)
    }
}
