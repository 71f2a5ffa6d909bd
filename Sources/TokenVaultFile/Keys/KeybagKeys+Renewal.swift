internal import TokenVaultCore
internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

// A new root key: everything wrapped under the old one is wrapped under the new one. Every class gets a new
// version, which the old root key does not open.
extension KeybagKeys {
    /// Returns fresh roots, with a passcode root if passphrases lead to the vault.
    static func freshRoots(
        withPasscode: Bool, vault: VaultIdentifier
    ) throws(Failure) -> KeyRing.Roots {
        let all = try wrapped { () throws(CryptoError) in try SymmetricKey.random() }
        let passcode: SymmetricKey? =
            withPasscode ? try wrapped { () throws(CryptoError) in try SymmetricKey.random() } : nil
        return try roots(all: all, passcode: passcode, vault: vault)
    }

    /// Moves the log key and the sets of `keybag` from the roots `old` to `new`. The caller changes the
    /// slots, and signs the keybag afterwards. `held` are the class keys that this device opens. The sets of
    /// other devices keep their wraps, and get the way to the roots these take.
    static func renew(
        _ keybag: inout Keybag, from old: KeyRing.Roots, to new: KeyRing.Roots, held: [ClassKeys],
        secrets: DeviceSecrets
    ) throws(Failure) {
        let vault = keybag.vault
        let data = associatedData("log key", [vault.bytes])
        let logKey = try open(
            keybag.logKey, try derive(old.holder, "tokenvault 1 log wrap", [vault.bytes]), data)
        keybag.logKey = try seal(
            [try wrapped { () throws(CryptoError) in try SymmetricKey(copying: logKey) }],
            try derive(new.holder, "tokenvault 1 log wrap", [vault.bytes]), data)
        for index in keybag.sets.indices {
            let set = keybag.sets[index]
            if set.device == Keybag.ClassSet.portable || set.device == secrets.device?.identifier {
                keybag.sets[index] = try renewed(set, held: held, vault: vault, roots: new, secrets: secrets)
            } else {
                let own = try roots(of: set, in: vault, under: old)
                keybag.sets[index].olderRoots = try sealed(own, for: set.device, vault: vault, under: new)
            }
        }
    }

    /// Returns the set wrapped under `roots`, with a new version of each class. A class whose keys are not
    /// held (its pepper is gone) cannot be opened and is left out.
    static func renewed(
        _ set: Keybag.ClassSet, held: [ClassKeys], vault: VaultIdentifier, roots: KeyRing.Roots,
        secrets: DeviceSecrets
    ) throws(Failure) -> Keybag.ClassSet {
        let tag = DeviceKey.setTag(of: set.device)
        let held = held.filter { $0.setTag == tag }
        var fresh = set
        fresh.olderRoots = nil
        fresh.keys = []
        // No class is lost because the system could not look: only the pepper may be missing.
        for key in set.keys where key.policy != AccessPolicy.whenPasscodeSetThisDeviceOnly.number {
            guard held.contains(where: { $0.policy.number == key.policy && $0.version == key.version }) else {
                throw .corrupt
            }
        }
        for keys in held.sorted(by: { ($0.policy.number, $0.version) < ($1.policy.number, $1.version) }) {
            fresh.keys.append(
                try wrappedClass(
                    keys.policy, version: keys.version, keys: [keys.metadata, keys.secret], vault: vault,
                    roots: roots, secrets: secrets))
        }
        for policy in Set(held.map(\.policy)).sorted(by: { $0.number < $1.number }) {
            let newest = set.keys.filter { $0.policy == policy.number }.map(\.version).max() ?? 0
            guard newest < .max else { throw .corrupt }
            let random = try wrapped { () throws(CryptoError) in
                [try SymmetricKey.random(), try SymmetricKey.random()]
            }
            fresh.keys.append(
                try wrappedClass(
                    policy, version: newest + 1, keys: random, vault: vault, roots: roots, secrets: secrets))
        }
        return fresh
    }

    /// Returns the roots that a set is wrapped under: the vault's, or older ones that these lead to.
    static func roots(
        of set: Keybag.ClassSet, in vault: VaultIdentifier, under roots: KeyRing.Roots
    ) throws(Failure) -> KeyRing.Roots {
        guard let older = set.olderRoots else { return roots }
        let data = olderRootData(set.device, vault)
        func opened(_ sealed: [UInt8], _ root: SymmetricKey?) throws(Failure) -> SymmetricKey? {
            guard let root, !sealed.isEmpty else { return nil }
            let wrap = try derive(root, "tokenvault 1 older root wrap", [vault.bytes, set.device])
            let bytes = try open(sealed, wrap, data)
            return try wrapped { () throws(CryptoError) in try SymmetricKey(copying: bytes) }
        }
        guard let holder = try opened(older.holder, roots.holder) else { throw .corrupt }
        return KeyRing.Roots(
            all: try opened(older.all, roots.all), holder: holder,
            passcode: try opened(older.passcode, roots.passcode))
    }

    private static func sealed(
        _ older: KeyRing.Roots, for device: [UInt8], vault: VaultIdentifier, under new: KeyRing.Roots
    ) throws(Failure) -> Keybag.OlderRoots {
        let data = olderRootData(device, vault)
        func sealed(_ root: SymmetricKey, _ new: SymmetricKey) throws(Failure) -> [UInt8] {
            let wrap = try derive(new, "tokenvault 1 older root wrap", [vault.bytes, device])
            return try seal([root], wrap, data)
        }
        guard let all = older.all, let newAll = new.all else { throw .noRoot }
        var result = Keybag.OlderRoots(
            all: try sealed(all, newAll), holder: try sealed(older.holder, new.holder), passcode: [])
        if let passcode = older.passcode, let newPasscode = new.passcode {
            result.passcode = try sealed(passcode, newPasscode)
        }
        return result
    }

    private static func olderRootData(_ device: [UInt8], _ vault: VaultIdentifier) -> [UInt8] {
        associatedData("older root", [vault.bytes, device])
    }
}
