internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// Makes, opens and changes keybags: the key hierarchy.
///
/// ```
/// passphrase ─Argon2id─┐
/// key file ──BLAKE2b───┤
/// keyring ───BLAKE2b───┤
/// recovery ──BLAKE2b───┴▶ slot key ─opens─▶ root R (+ passcode root P, passphrases only), or A alone
/// R ─▶ after-first-unlock root A ─▶ log key, keybag holder code
/// R ─▶ wraps when-unlocked classes      (this-device-only: mixed with the device key)
/// A ─▶ wraps after-first-unlock classes (this-device-only: mixed with the device key)
/// P ─▶ wraps the passcode class, mixed with the device key and the passcode pepper
/// ```
enum KeybagKeys {
    /// The secrets on this device, as far as they exist.
    struct DeviceSecrets: Sendable {
        var device: DeviceKey?
        var pepper: SymmetricKey?
    }

    /// The reason that a keybag did not open.
    enum Failure: Error {
        /// No slot of the method's kind has this key.
        case noSlot
        /// The method is a recovery key that is mistyped in these groups, whose numbers begin with 1.
        case mistyped([Int])
        /// The operation requires the root, which the slot does not lead to.
        case noRoot
        /// Deriving a passphrase's key takes more memory than the process may use.
        case memory(needed: UInt64, allowed: UInt64)
        /// Deriving a passphrase's key takes more memory than its budget has, or than other derivations leave
        /// of that.
        case budget(needed: UInt64, DerivationBudget.Refusal)
        /// A slot or a class that authenticated does not open.
        case corrupt
        /// Deriving a passphrase's key takes more than the time that is left.
        case time(needed: Duration)
        case crypto(CryptoError)
    }

    /// Makes a new keybag with one slot, and its keys.
    static func make(
        vault: VaultIdentifier, method: UnlockMethod, cost: PasswordHashCost, created: Date,
        secrets: DeviceSecrets, within limit: DerivationLimit = .none
    ) throws(Failure) -> (Keybag, KeyRing) {
        let root = try wrapped { () throws(CryptoError) in try SymmetricKey.random() }
        let logKey = try wrapped { () throws(CryptoError) in try SymmetricKey.random() }
        let passcode: SymmetricKey? =
            method.isPassphrase ? try wrapped { () throws(CryptoError) in try SymmetricKey.random() } : nil
        let roots = try roots(all: root, passcode: passcode, vault: vault)
        let logWrap = try derive(roots.holder, "tokenvault 1 log wrap", [vault.bytes])
        var keybag = Keybag(
            vault: vault, generation: 1, nextSlot: 1, slots: [], sets: [],
            logKey: try seal([logKey], logWrap, associatedData("log key", [vault.bytes])))
        keybag.sets.append(
            Keybag.ClassSet(
                device: Keybag.ClassSet.portable,
                keys: try [.whenUnlocked, .afterFirstUnlock].map { (policy: AccessPolicy) throws(Failure) in
                    try freshClass(policy, vault: vault, roots: roots, secrets: secrets)
                }))
        if let device = secrets.device {
            var policies: [AccessPolicy] = [.whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly]
            if roots.passcode != nil, secrets.pepper != nil {
                policies.append(.whenPasscodeSetThisDeviceOnly)
            }
            keybag.sets.append(
                Keybag.ClassSet(
                    device: device.identifier, enrolled: VaultFormat.milliseconds(created),
                    keys: try policies.map { (policy: AccessPolicy) throws(Failure) in
                        try freshClass(policy, vault: vault, roots: roots, secrets: secrets)
                    }))
        }
        keybag.slots.append(
            try makeSlot(
                method, identifier: keybag.nextSlot, scope: .all, cost: cost, created: created, roots: roots,
                vault: vault, within: limit))
        keybag.nextSlot += 1
        try sign(&keybag, roots: roots)
        let ring = try ring(
            of: keybag, slot: keybag.slots[0].identifier, roots: roots, secrets: secrets)
        return (keybag, ring)
    }

    /// Opens `keybag` with `method` and checks that it is whole.
    static func open(
        _ keybag: Keybag, with method: UnlockMethod, secrets: DeviceSecrets,
        within limit: DerivationLimit = .none
    ) throws(Failure) -> KeyRing {
        let (slot, roots) = try openSlot(of: keybag, with: method, within: limit)
        try check(keybag, roots: roots)
        return try ring(of: keybag, slot: slot.identifier, roots: roots, secrets: secrets)
    }

    /// Throws `corrupt` unless a holder of the root made `keybag`, as far as `roots` can tell.
    static func check(_ keybag: Keybag, roots: KeyRing.Roots) throws(Failure) {
        let codes = try codes(of: keybag, roots: roots)
        guard codes.root.map({ constantTimeEqual($0, keybag.rootCode) }) ?? true,
            constantTimeEqual(codes.holder, keybag.holderCode)
        else { throw .corrupt }
    }

    /// Returns whether a keybag is signed under these roots. Throws what keeps that from being known.
    static func isAuthentic(
        _ keybag: Keybag, under roots: KeyRing.Roots
    ) throws(TokenStorageError) -> Bool {
        do throws(Failure) {
            try check(keybag, roots: roots)
            return true
        } catch {
            if case .corrupt = error { return false }
            throw self.error(for: error)
        }
    }

    /// Returns a fresh class for `policy`, wrapped for the device in `secrets` or portably.
    static func freshClass(
        _ policy: AccessPolicy, version: UInt32 = 1, vault: VaultIdentifier, roots: KeyRing.Roots,
        secrets: DeviceSecrets
    ) throws(Failure) -> Keybag.WrappedClass {
        try wrappedClass(
            policy, version: version,
            keys: try wrapped { () throws(CryptoError) in
                [try SymmetricKey.random(), try SymmetricKey.random()]
            }, vault: vault, roots: roots, secrets: secrets)
    }

    /// Returns a class's metadata key and secret key, wrapped under `roots`.
    static func wrappedClass(
        _ policy: AccessPolicy, version: UInt32, keys: [SymmetricKey], vault: VaultIdentifier,
        roots: KeyRing.Roots, secrets: DeviceSecrets
    ) throws(Failure) -> Keybag.WrappedClass {
        guard let wrap = try classWrap(policy, vault: vault, roots: roots, secrets: secrets) else {
            throw .corrupt
        }
        let device = policy.isThisDeviceOnly ? secrets.device?.identifier ?? [] : Keybag.ClassSet.portable
        var result = Keybag.WrappedClass(policy: policy.number, version: version, wrapped: [])
        result.wrapped = try seal(keys, wrap, classData(result, device: device, vault: vault))
        return result
    }

    /// Writes both codes over the present contents of the keybag.
    static func sign(_ keybag: inout Keybag, roots: KeyRing.Roots) throws(Failure) {
        let codes = try codes(of: keybag, roots: roots)
        guard let root = codes.root else { throw .noRoot }
        keybag.rootCode = root
        keybag.holderCode = codes.holder
    }

    /// Returns the keys that `roots` and this device's secrets give of a keybag.
    static func ring(
        of keybag: Keybag, slot: UInt32, roots: KeyRing.Roots, secrets: DeviceSecrets
    ) throws(Failure) -> KeyRing {
        let logWrap = try derive(roots.holder, "tokenvault 1 log wrap", [keybag.vault.bytes])
        let logKeyBytes = try open(
            keybag.logKey, logWrap, associatedData("log key", [keybag.vault.bytes]))
        let log = try wrapped { () throws(CryptoError) in
            try LogKeys(logKey: try SymmetricKey(copying: logKeyBytes))
        }
        var classes: [ClassKeys] = []
        var opensPasscodeClass = secrets.pepper != nil
        for set in keybag.sets {
            let isPortable = set.device == Keybag.ClassSet.portable
            guard isPortable || set.device == secrets.device?.identifier else { continue }
            let roots = try self.roots(of: set, in: keybag.vault, under: roots)
            for key in set.keys {
                guard let policy = AccessPolicy(number: key.policy), policy.isThisDeviceOnly != isPortable
                else { throw .corrupt }
                guard let wrap = try classWrap(policy, vault: keybag.vault, roots: roots, secrets: secrets)
                else { continue }
                let bytes: SecretBytes
                do throws(Failure) {
                    bytes = try open(
                        key.wrapped, wrap, classData(key, device: set.device, vault: keybag.vault))
                } catch {
                    // A wrong pepper makes only this class unreadable.
                    guard case .corrupt = error, policy == .whenPasscodeSetThisDeviceOnly else { throw error }
                    opensPasscodeClass = false
                    continue
                }
                classes.append(
                    try wrapped { () throws(CryptoError) in
                        try ClassKeys(
                            policy: policy, version: key.version,
                            setTag: DeviceKey.setTag(of: set.device),
                            metadata: try SymmetricKey(copying: bytes),
                            secret: try SymmetricKey(copying: bytes, from: SymmetricKey.length),
                            vault: keybag.vault)
                    })
            }
        }
        return KeyRing(
            vault: keybag.vault, log: log, roots: roots,
            holderCode: try holderCode(of: keybag, under: roots), classes: classes,
            facts: KeyRing.Facts(
                slot: slot, deviceTag: secrets.device?.setTag,
                isEnrolled: keybag.sets.contains { $0.device == secrets.device?.identifier },
                hasDevices: keybag.sets.contains { $0.device != Keybag.ClassSet.portable },
                hasPasscodeSlot: keybag.slots.contains { $0.kind == .passphrase },
                hasPepper: opensPasscodeClass,
                setTags: Set(keybag.sets.map { DeviceKey.setTag(of: $0.device) }),
                succession: try succession(of: keybag, under: roots)))
    }

    // MARK: - Derivations

    static func roots(
        all: SymmetricKey, passcode: SymmetricKey?, vault: VaultIdentifier
    ) throws(Failure) -> KeyRing.Roots {
        let holder = try derive(all, "tokenvault 1 after-first-unlock root", [vault.bytes])
        return KeyRing.Roots(all: all, holder: holder, passcode: passcode)
    }

    /// Returns the key that wraps a class; `nil` when this device or this slot does not lead to it.
    static func classWrap(
        _ policy: AccessPolicy, vault: VaultIdentifier, roots: KeyRing.Roots, secrets: DeviceSecrets
    ) throws(Failure) -> SymmetricKey? {
        var parts = [vault.bytes, [policy.number]]
        if !policy.isThisDeviceOnly {
            guard let root = policy.isReadableAfterFirstUnlock ? roots.holder : roots.all else { return nil }
            return try derive(root, "tokenvault 1 portable class wrap", parts)
        }
        guard let device = secrets.device else { return nil }
        parts.append(device.identifier)
        if policy == .whenPasscodeSetThisDeviceOnly {
            guard let passcode = roots.passcode, let pepper = secrets.pepper else { return nil }
            return try derive(
                passcode, "tokenvault 1 passcode class wrap", parts, secrets: [device.key, pepper])
        }
        guard let root = policy.isReadableAfterFirstUnlock ? roots.holder : roots.all else { return nil }
        return try derive(root, "tokenvault 1 device class wrap", parts, secrets: [device.key])
    }

    /// Returns the codes of a keybag; that of the root only for its holders.
    private static func codes(
        of keybag: Keybag, roots: KeyRing.Roots
    ) throws(Failure) -> (root: [UInt8]?, holder: [UInt8]) {
        let bytes = keybag.authenticatedBytes()
        let key = try holderCode(of: keybag, under: roots)
        defer { key.wipe() }
        let holder = try code(of: bytes, with: key)
        guard let all = roots.all else { return (nil, holder) }
        return (try code(of: bytes, with: try codeKey(all, "root", of: keybag)), holder)
    }

    /// Returns the key of the keybag's code for every holder.
    static func holderCode(
        of keybag: Keybag, under roots: KeyRing.Roots
    ) throws(Failure) -> SymmetricKey {
        try codeKey(roots.holder, "holder", of: keybag)
    }

    private static func codeKey(
        _ root: SymmetricKey, _ name: String, of keybag: Keybag
    ) throws(Failure) -> SymmetricKey {
        try derive(root, "tokenvault 1 keybag \(name) code", [keybag.vault.bytes])
    }

    private static func code(of bytes: [UInt8], with key: SymmetricKey) throws(Failure) -> [UInt8] {
        guard let code = Hash.keyed(bytes, key: key, length: Keybag.codeLength) else {
            throw .crypto(.unavailable)
        }
        return code
    }

    /// Returns whether a keybag is signed under the after-first-unlock root that `holderCode` is the key of. Throws what
    /// keeps that from being known.
    static func isAuthentic(
        _ keybag: Keybag, underHolderOf holderCode: SymmetricKey
    ) throws(TokenStorageError) -> Bool {
        try translating { () throws(Failure) in
            constantTimeEqual(try code(of: keybag.authenticatedBytes(), with: holderCode), keybag.holderCode)
        }
    }

    static func derive(
        _ key: SymmetricKey, _ label: String, _ parts: [[UInt8]], secrets: [SymmetricKey] = []
    ) throws(Failure) -> SymmetricKey {
        try wrapped { () throws(CryptoError) in
            try Hash.derive(from: key, label: label, parts: parts, secrets: secrets)
        }
    }

    static func classData(
        _ key: Keybag.WrappedClass, device: [UInt8], vault: VaultIdentifier
    ) -> [UInt8] {
        var writer = ByteWriter()
        writer.append(key.policy)
        writer.append(key.version)
        return associatedData("class", [vault.bytes, device, writer.bytes])
    }

    /// Returns the format, version and purpose, then parts of fixed length.
    static func associatedData(_ purpose: String, _ parts: [[UInt8]]) -> [UInt8] {
        Array("tokenvault 1 \(purpose)".utf8) + [0] + parts.flatMap { $0 }
    }

    static func seal(
        _ keys: [SymmetricKey], _ wrap: SymmetricKey, _ data: [UInt8]
    ) throws(Failure) -> [UInt8] {
        guard let bytes = SymmetricKey.concatenating(keys),
            let sealed = AuthenticatedEncryption.seal(bytes, key: wrap, associatedData: data)
        else { throw .crypto(.unavailable) }
        return sealed
    }

    static func open(
        _ sealed: [UInt8], _ wrap: SymmetricKey, _ data: [UInt8]
    ) throws(Failure) -> SecretBytes {
        switch AuthenticatedEncryption.open(
            sealed, at: 0..<sealed.count, key: wrap, associatedData: data)
        {
        case .plaintext(let bytes): return bytes
        case .forged: throw .corrupt
        case .wiped: throw .crypto(.unavailable)
        }
    }

    static func wrapped<Value>(
        _ body: () throws(CryptoError) -> Value
    ) throws(Failure) -> Value {
        do { return try body() } catch { throw .crypto(error) }
    }
}
