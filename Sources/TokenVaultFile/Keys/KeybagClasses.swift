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

    /// Returns whether the keybag leads to the keys of an item, as far as they must be there. Also returns true for a
    /// this-device-only item, whose keys may have been destroyed with the device or the last passphrase. Also returns
    /// true where only a newer program knows the policy.
    func mayOpen(_ entry: IndexEntry) -> Bool {
        guard let policy = AccessPolicy(number: entry.policy), !policy.isThisDeviceOnly else { return true }
        return keys[KeyRing.ClassName(of: entry)] != nil
    }

    /// Returns whether this keybag and `other` have the same key under a name. The wrapped bytes tell, for a name may
    /// have been given twice, on two branches. With `hasSameRoot`, the two keybags are under the same roots. A set that
    /// its device has not renewed since a key rotation then has the same keys as the renewed set.
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
