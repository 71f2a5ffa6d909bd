internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultPlatform

// The state that the backend's calls need from the vault.
extension BlockingFileVault {
    /// Returns the session, to use items. Throws `locked` before the first unlock, and `closed`.
    func session() throws(TokenStorageError) -> VaultSession {
        try checkUsable()
        lockIfDue(asUse: true)
        let (session, isClosed) = state.withLock { ($0.session, $0.isClosed) }
        guard let session else { throw .file(isClosed ? .closed : .locked) }
        return session
    }

    /// The policies that an item can be stored with; before the first unlock, those that the keybag promises.
    var supportedPolicies: Set<AccessPolicy> {
        guard !isInherited else { return [] }
        let (session, keybag) = state.withLock { ($0.session, $0.keybag) }
        if let session { return session.ring.supportedPolicies }
        let isEnrolled = keybag.sets.contains { $0.device != Keybag.ClassSet.portable }
        let hasPasscode = keybag.slots.contains { $0.kind == .passphrase }
        return Set(
            AccessPolicy.allCases.filter {
                $0 == .whenPasscodeSetThisDeviceOnly
                    ? isEnrolled && hasPasscode : !$0.isThisDeviceOnly || isEnrolled
            })
    }

    var defaultPolicy: AccessPolicy {
        guard !isInherited else { return .whenUnlocked }
        let (session, keybag) = state.withLock { ($0.session, $0.keybag) }
        if let session { return session.defaultPolicy }
        return keybag.sets.contains { $0.device != Keybag.ClassSet.portable }
            ? .whenUnlockedThisDeviceOnly : .whenUnlocked
    }

    func remember(_ keybag: Keybag) { state.withLock { $0.keybag = keybag } }

    /// Whether this is a forked child's copy of its parent's vault. The child must not use the parent's lock
    /// and counters, and has none of the keys. The child may not even look at the state: another thread may
    /// have held any lock at the fork.
    var isInherited: Bool { ProcessFacts.identifier != process }

    /// Whether the vault was closed, here or by another thread.
    package var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Throws `closed`, also for a forked child's copy of its parent's vault.
    func checkUsable() throws(TokenStorageError) {
        guard !isInherited else {
            throw .file(.closed, .permission(.fork))
        }
        if isClosed { throw .file(.closed) }
        lockIfDue()
    }
}
