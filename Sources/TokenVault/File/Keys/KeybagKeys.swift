internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// Makes, opens and changes keybags: the key hierarchy.
///
/// ```
/// passphrase ─Argon2id─┐
/// key file ──BLAKE2b───┤
/// keyring ───BLAKE2b───┴▶ slot key ─opens─▶ root R (+ passcode root P, passphrases only)
/// R ─▶ after-first-unlock root A ─▶ log key, keybag holder code
/// R ─▶ wraps when-unlocked classes      (this-device-only: mixed with the device key)
/// A ─▶ wraps after-first-unlock classes (this-device-only: mixed with the device key)
/// P ─▶ wraps the passcode class, mixed with the device key and the passcode pepper
/// ```
enum KeybagKeys {
    /// What is kept on this device, as far as it is there.
    struct DeviceSecrets: Sendable {
        var device: DeviceKey?
        var pepper: SymmetricKey?
    }

    /// Why a keybag did not open.
    enum Failure: Error {
        /// No slot of the method's kind has this key.
        case noSlot
        /// A slot or a class that authenticated should open and does not.
        case corrupt
        case crypto(CryptoError)
    }

    /// A new keybag with one slot, and its keys.
    static func make(
        vault: VaultIdentifier, method: UnlockMethod, cost: PasswordHashCost, created: Date,
        secrets: DeviceSecrets
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
                    device: device.identifier,
                    keys: try policies.map { (policy: AccessPolicy) throws(Failure) in
                        try freshClass(policy, vault: vault, roots: roots, secrets: secrets)
                    }))
        }
        try addSlot(method, cost: cost, created: created, roots: roots, to: &keybag)
        try sign(&keybag, roots: roots)
        let ring = try ring(
            of: keybag, slot: keybag.slots[0].identifier, roots: roots, secrets: secrets)
        return (keybag, ring)
    }

    /// Opens `keybag` with `method` and checks that it is whole.
    static func open(
        _ keybag: Keybag, with method: UnlockMethod, secrets: DeviceSecrets
    ) throws(Failure) -> KeyRing {
        let (slot, roots) = try openSlot(of: keybag, with: method)
        try check(keybag, roots: roots)
        return try ring(of: keybag, slot: slot.identifier, roots: roots, secrets: secrets)
    }

    /// Whether `keybag` is one that the holder of `roots` made.
    static func check(_ keybag: Keybag, roots: KeyRing.Roots) throws(Failure) {
        let codes = try codes(of: keybag, roots: roots)
        guard constantTimeEqual(codes.root, keybag.rootCode),
            constantTimeEqual(codes.holder, keybag.holderCode)
        else { throw .corrupt }
    }

    /// The roots behind the slot that `method` opens.
    static func openSlot(
        of keybag: Keybag, with method: UnlockMethod
    ) throws(Failure) -> (Keybag.Slot, KeyRing.Roots) {
        for slot in keybag.slots where slot.kind == method.slotKind {
            let key = try slotKey(method, salt: slot.salt, cost: slot.cost)
            guard constantTimeEqual(try commitment(key, keybag.vault, slot.salt), slot.commitment) else {
                continue
            }
            let wrap = try derive(key, "tokenvault 1 slot wrap", [keybag.vault.bytes])
            let secrets = try open(
                slot.wrapped, wrap, slotData(slot, vault: keybag.vault))
            let keys = secrets.count / SymmetricKey.length
            guard keys * SymmetricKey.length == secrets.count, keys == (slot.kind == .passphrase ? 2 : 1)
            else { throw .corrupt }
            let root = try wrapped { () throws(CryptoError) in try SymmetricKey(copying: secrets) }
            let passcode: SymmetricKey? =
                keys == 2
                ? try wrapped { () throws(CryptoError) in
                    try SymmetricKey(copying: secrets, from: SymmetricKey.length)
                } : nil
            return (slot, try roots(all: root, passcode: passcode, vault: keybag.vault))
        }
        throw .noSlot
    }

    /// Adds a slot that leads to `roots`. Sign the keybag afterwards.
    static func addSlot(
        _ method: UnlockMethod, cost: PasswordHashCost, created: Date, roots: KeyRing.Roots,
        to keybag: inout Keybag
    ) throws(Failure) {
        let slot = try makeSlot(
            method, identifier: keybag.nextSlot, cost: cost, created: created, roots: roots,
            vault: keybag.vault)
        keybag.slots.append(slot)
        keybag.nextSlot += 1
    }

    /// A slot that leads to `roots`.
    static func makeSlot(
        _ method: UnlockMethod, identifier: UInt32, cost: PasswordHashCost, created: Date,
        roots: KeyRing.Roots, vault: VaultIdentifier
    ) throws(Failure) -> Keybag.Slot {
        let salt = Random.bytes(PasswordHash.saltLength)
        let cost = method.isPassphrase ? cost : PasswordHashCost(passes: 0, memory: 0)
        let key = try slotKey(method, salt: salt, cost: cost)
        var slot = Keybag.Slot(
            identifier: identifier, kind: method.slotKind, scope: .all,
            created: Int64(created.timeIntervalSince1970 * 1_000), cost: cost, salt: salt,
            commitment: try commitment(key, vault, salt), wrapped: [])
        let wrap = try derive(key, "tokenvault 1 slot wrap", [vault.bytes])
        var secrets = [roots.all]
        if method.isPassphrase {
            guard let passcode = roots.passcode else { throw .corrupt }
            secrets.append(passcode)
        }
        slot.wrapped = try seal(secrets, wrap, slotData(slot, vault: vault))
        return slot
    }

    /// A fresh class for `policy`, wrapped for the device in `secrets` or portably.
    static func freshClass(
        _ policy: AccessPolicy, vault: VaultIdentifier, roots: KeyRing.Roots, secrets: DeviceSecrets
    ) throws(Failure) -> Keybag.WrappedClass {
        let keys = try wrapped { () throws(CryptoError) in
            [try SymmetricKey.random(), try SymmetricKey.random()]
        }
        guard let wrap = try classWrap(policy, vault: vault, roots: roots, secrets: secrets) else {
            throw .corrupt
        }
        let device = policy.isThisDeviceOnly ? secrets.device?.identifier ?? [] : Keybag.ClassSet.portable
        var result = Keybag.WrappedClass(policy: policy.number, version: 1, wrapped: [])
        result.wrapped = try seal(keys, wrap, classData(result, device: device, vault: vault))
        return result
    }

    /// Writes both codes over the keybag as it is now.
    static func sign(_ keybag: inout Keybag, roots: KeyRing.Roots) throws(Failure) {
        let codes = try codes(of: keybag, roots: roots)
        keybag.rootCode = codes.root
        keybag.holderCode = codes.holder
    }

    /// The keys that `roots` and this device's secrets give of a keybag.
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
                    // A pepper that is not the one it was wrapped with darkens this class alone.
                    guard case .corrupt = error, policy == .whenPasscodeSetThisDeviceOnly else { throw error }
                    opensPasscodeClass = false
                    continue
                }
                classes.append(
                    try wrapped { () throws(CryptoError) in
                        ClassKeys(
                            policy: policy, version: key.version,
                            setTag: DeviceKey.setTag(of: set.device),
                            metadata: try SymmetricKey(copying: bytes),
                            secret: try SymmetricKey(copying: bytes, from: SymmetricKey.length))
                    })
            }
        }
        return KeyRing(
            vault: keybag.vault, log: log, roots: roots, classes: classes,
            facts: KeyRing.Facts(
                slot: slot, deviceTag: secrets.device?.setTag,
                isEnrolled: keybag.sets.contains { $0.device == secrets.device?.identifier },
                hasDevices: keybag.sets.contains { $0.device != Keybag.ClassSet.portable },
                hasPasscodeSlot: keybag.slots.contains { $0.kind == .passphrase },
                hasPepper: opensPasscodeClass, keybagGeneration: keybag.generation))
    }

    // MARK: - Derivations

    private static func roots(
        all: SymmetricKey, passcode: SymmetricKey?, vault: VaultIdentifier
    ) throws(Failure) -> KeyRing.Roots {
        let holder = try derive(all, "tokenvault 1 after-first-unlock root", [vault.bytes])
        return KeyRing.Roots(all: all, holder: holder, passcode: passcode)
    }

    /// The key that wraps a class; `nil` when this device or this slot does not lead to it.
    private static func classWrap(
        _ policy: AccessPolicy, vault: VaultIdentifier, roots: KeyRing.Roots, secrets: DeviceSecrets
    ) throws(Failure) -> SymmetricKey? {
        var parts = [vault.bytes, [policy.number]]
        if !policy.isThisDeviceOnly {
            let root = policy.isReadableAfterFirstUnlock ? roots.holder : roots.all
            return try derive(root, "tokenvault 1 portable class wrap", parts)
        }
        guard let device = secrets.device else { return nil }
        parts.append(device.identifier)
        if policy == .whenPasscodeSetThisDeviceOnly {
            guard let passcode = roots.passcode, let pepper = secrets.pepper else { return nil }
            return try derive(
                passcode, "tokenvault 1 passcode class wrap", parts, secrets: [device.key, pepper])
        }
        let root = policy.isReadableAfterFirstUnlock ? roots.holder : roots.all
        return try derive(root, "tokenvault 1 device class wrap", parts, secrets: [device.key])
    }

    private static func slotKey(
        _ method: UnlockMethod, salt: [UInt8], cost: PasswordHashCost
    ) throws(Failure) -> SymmetricKey {
        try wrapped { () throws(CryptoError) in
            switch method {
            case .passphrase(let passphrase):
                try PasswordHash.derive(passphrase: passphrase.bytes, salt: salt, cost: cost)
            case .keyFile(let contents):
                try Hash.key(of: contents.bytes, label: "tokenvault 1 key file", parts: [salt])
            case .secretService(let key):
                try Hash.key(of: key.bytes, label: "tokenvault 1 secret service", parts: [salt])
            }
        }
    }

    private static func commitment(
        _ key: SymmetricKey, _ vault: VaultIdentifier, _ salt: [UInt8]
    ) throws(Failure) -> [UInt8] {
        let input = Array("tokenvault 1 slot commitment".utf8) + vault.bytes + salt
        guard let code = Hash.keyed(input, key: key, length: Keybag.commitmentLength) else {
            throw .crypto(.unavailable)
        }
        return code
    }

    private static func codes(
        of keybag: Keybag, roots: KeyRing.Roots
    ) throws(Failure) -> (root: [UInt8], holder: [UInt8]) {
        let bytes = keybag.authenticatedBytes()
        let rootKey = try derive(roots.all, "tokenvault 1 keybag root code", [keybag.vault.bytes])
        let holderKey = try derive(roots.holder, "tokenvault 1 keybag holder code", [keybag.vault.bytes])
        guard let root = Hash.keyed(bytes, key: rootKey, length: Keybag.codeLength),
            let holder = Hash.keyed(bytes, key: holderKey, length: Keybag.codeLength)
        else { throw .crypto(.unavailable) }
        return (root, holder)
    }

    private static func derive(
        _ key: SymmetricKey, _ label: String, _ parts: [[UInt8]], secrets: [SymmetricKey] = []
    ) throws(Failure) -> SymmetricKey {
        try wrapped { () throws(CryptoError) in
            try Hash.derive(from: key, label: label, parts: parts, secrets: secrets)
        }
    }

    private static func slotData(_ slot: Keybag.Slot, vault: VaultIdentifier) -> [UInt8] {
        var writer = ByteWriter()
        writer.append(slot.identifier)
        writer.append(slot.kind.rawValue)
        writer.append(slot.scope.rawValue)
        writer.append(slot.created)
        writer.append(slot.cost.passes)
        writer.append(slot.cost.memory)
        writer.append(slot.salt)
        return associatedData("slot", [vault.bytes, writer.bytes])
    }

    private static func classData(
        _ key: Keybag.WrappedClass, device: [UInt8], vault: VaultIdentifier
    ) -> [UInt8] {
        var writer = ByteWriter()
        writer.append(key.policy)
        writer.append(key.version)
        return associatedData("class", [vault.bytes, device, writer.bytes])
    }

    /// Format, version and purpose, then parts of fixed length.
    private static func associatedData(_ purpose: String, _ parts: [[UInt8]]) -> [UInt8] {
        Array("tokenvault 1 \(purpose)".utf8) + [0] + parts.flatMap { $0 }
    }

    private static func seal(
        _ keys: [SymmetricKey], _ wrap: SymmetricKey, _ data: [UInt8]
    ) throws(Failure) -> [UInt8] {
        guard let bytes = SymmetricKey.concatenating(keys),
            let sealed = AuthenticatedEncryption.seal(bytes, key: wrap, associatedData: data)
        else { throw .crypto(.unavailable) }
        return sealed
    }

    private static func open(
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

    private static func wrapped<Value>(
        _ body: () throws(CryptoError) -> Value
    ) throws(Failure) -> Value {
        do { return try body() } catch { throw .crypto(error) }
    }
}

extension UnlockMethod {
    var isPassphrase: Bool { slotKind == .passphrase }

    var slotKind: Keybag.Slot.Kind {
        switch self {
        case .passphrase: .passphrase
        case .keyFile: .keyFile
        case .secretService: .secretService
        }
    }
}
