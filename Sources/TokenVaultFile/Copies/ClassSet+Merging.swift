internal import TokenVaultCore

// Two sets of one device, in the files of a merge.
extension Keybag.ClassSet {
    /// Returns whether merges of two files that have these sets of one device use this one. All devices get the same
    /// answer: a later enrolment, then a set that has taken the newest roots, then newer versions. Two sets that are
    /// equal so far were made on two branches: their bytes decide.
    func precedes(_ other: Self) -> Bool {
        if enrolled != other.enrolled { return enrolled > other.enrolled }
        let isRenewed = olderRoots == nil
        if isRenewed != (other.olderRoots == nil) { return isRenewed }
        let (mine, theirs) = (newest, other.newest)
        let (versions, others) = (mine.map { $0?.version ?? 0 }, theirs.map { $0?.version ?? 0 })
        if versions != others { return others.lexicographicallyPrecedes(versions) }
        let (bytes, otherBytes) = (mine.flatMap { $0?.wrapped ?? [] }, theirs.flatMap { $0?.wrapped ?? [] })
        if bytes != otherBytes { return otherBytes.lexicographicallyPrecedes(bytes) }
        return keys.count < other.keys.count
    }

    /// The newest key of each class. The passcode class comes last.
    private var newest: [Keybag.WrappedClass?] {
        [
            AccessPolicy.whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly,
            .whenPasscodeSetThisDeviceOnly,
        ].map { policy in
            keys.filter { $0.policy == policy.number }.max { $0.version < $1.version }
        }
    }

    /// Returns whether a key of `other` can be in this set: it is under the same roots, and its name is free.
    func canHold(_ key: Keybag.WrappedClass, of other: Self) -> Bool {
        enrolled == other.enrolled && olderRoots == other.olderRoots
            && !keys.contains { $0.policy == key.policy && $0.version == key.version }
    }
}
