internal import TokenVaultCore

/// The class keys of a keybag, by the names that items have for them.
struct KeybagClasses {
    /// A class key that the keybag leads to.
    private struct Key {
        var wrapped: [UInt8]
        /// The date of its device's enrolment.
        var enrolled: Int64
        var isUnderOlderRoots: Bool
    }

    private var keys: [KeyRing.ClassName: Key] = [:]

    init(_ keybag: Keybag) {
        for set in keybag.sets {
            let tag = DeviceKey.setTag(of: set.device)
            for key in set.keys where keybag.hasPassphrase || !key.isPasscodeClass {
                keys[KeyRing.ClassName(policy: key.policy, setTag: tag, version: key.version)] = Key(
                    wrapped: key.wrapped, enrolled: set.enrolled, isUnderOlderRoots: set.olderRoots != nil)
            }
        }
    }

    /// Returns whether the keys of an item were destroyed, with its device or the last passphrase. The item then
    /// reads as absent.
    func lacksKeys(of entry: IndexEntry) -> Bool {
        AccessPolicy(number: entry.policy)?.isThisDeviceOnly == true
            && keys[KeyRing.ClassName(of: entry)] == nil
    }

    /// Returns whether this keybag and `other` have the same key under a name. The wrapped bytes tell, for a name may
    /// have been given twice, on two branches. With `hasSameRoot`, the two keybags are under the same roots: a set that
    /// its device has not wrapped again after a key rotation then has the keys of the one that it has.
    func hasSameKey(as other: Self, under name: KeyRing.ClassName, hasSameRoot: Bool) -> Bool {
        guard let mine = keys[name], let theirs = other.keys[name] else { return false }
        if mine.wrapped == theirs.wrapped { return true }
        return hasSameRoot && mine.enrolled == theirs.enrolled
            && mine.isUnderOlderRoots != theirs.isUnderOlderRoots
    }

    /// Returns whether this keybag has a key of that name.
    func hasKey(_ name: KeyRing.ClassName) -> Bool { keys[name] != nil }
}

extension KeyRing.ClassName {
    /// The class whose keys an item is sealed under.
    init(of entry: IndexEntry) {
        self.init(policy: entry.policy, setTag: entry.setTag, version: entry.keyVersion)
    }

    init(of keys: ClassKeys) {
        self.init(policy: keys.policy.number, setTag: keys.setTag, version: keys.version)
    }
}

extension Keybag.WrappedClass {
    var isPasscodeClass: Bool { policy == AccessPolicy.whenPasscodeSetThisDeviceOnly.number }
}

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
    func hasRoom(for key: Keybag.WrappedClass, of other: Self) -> Bool {
        enrolled == other.enrolled && olderRoots == other.olderRoots
            && !keys.contains { $0.policy == key.policy && $0.version == key.version }
    }
}
