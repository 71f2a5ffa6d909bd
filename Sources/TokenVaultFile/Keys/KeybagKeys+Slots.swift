internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

// Slots: from the secret of the user or a device to the roots.
extension KeybagKeys {
    /// Returns the roots behind the slot that `method` opens. A passphrase that is the text of a recovery key
    /// opens the slots of both kinds.
    static func openSlot(
        of keybag: Keybag, with method: UnlockMethod, within limit: DerivationLimit = .none
    ) throws(Failure) -> (Keybag.Slot, KeyRing.Roots) {
        for method in try readings(of: method, in: keybag) {
            for slot in keybag.slots where slot.kind == method.slotKind {
                if let roots = try open(slot, of: keybag.vault, with: method, within: limit) {
                    return (slot, roots)
                }
            }
        }
        throw .noSlot
    }

    /// Returns the possible meanings of `method` in a vault with these slots, the cheapest to try first.
    private static func readings(
        of method: UnlockMethod, in keybag: Keybag
    ) throws(Failure) -> [UnlockMethod] {
        guard case .passphrase(let text) = method, keybag.slots.contains(where: { $0.kind == .recovery })
        else { return [method] }
        switch RecoveryKey.read(text.spellings[0]) {
        case .key(let key): return [.recoveryKey(key), method]
        case .mistyped(let groups): throw .mistyped(groups)
        case .somethingElse: return [method]
        }
    }

    /// Returns the roots behind `slot`; `nil` when `method` does not open it. A passphrase is tried in the
    /// form of new slots, and then as it was given: another program's slot may use the bytes unchanged.
    static func open(
        _ slot: Keybag.Slot, of vault: VaultIdentifier, with method: UnlockMethod,
        within limit: DerivationLimit = .none
    ) throws(Failure) -> KeyRing.Roots? {
        for spelling in method.spellings {
            if let roots = try open(slot, of: vault, spelledAs: spelling, within: limit) { return roots }
        }
        return nil
    }

    private static func open(
        _ slot: Keybag.Slot, of vault: VaultIdentifier, spelledAs method: UnlockMethod,
        within limit: DerivationLimit
    ) throws(Failure) -> KeyRing.Roots? {
        let key = try slotKey(method, salt: slot.salt, cost: slot.cost, within: limit)
        guard constantTimeEqual(try commitment(key, vault, slot.salt), slot.commitment) else { return nil }
        let wrap = try derive(key, "tokenvault 1 slot wrap", [vault.bytes])
        let secrets = try open(slot.wrapped, wrap, slotData(slot, vault: vault))
        let leadsToPasscode = slot.kind == .passphrase && slot.scope == .all
        guard secrets.count == SymmetricKey.length * (leadsToPasscode ? 2 : 1) else { throw .corrupt }
        let first = try wrapped { () throws(CryptoError) in try SymmetricKey(copying: secrets) }
        if slot.scope == .afterFirstUnlock { return KeyRing.Roots(all: nil, holder: first, passcode: nil) }
        let passcode: SymmetricKey? =
            leadsToPasscode
            ? try wrapped { () throws(CryptoError) in
                try SymmetricKey(copying: secrets, from: SymmetricKey.length)
            } : nil
        return try roots(all: first, passcode: passcode, vault: vault)
    }

    /// Returns a slot that leads to as much of `roots` as `scope` says.
    static func makeSlot(
        _ method: UnlockMethod, identifier: UInt32, scope: Keybag.Slot.Scope, cost: PasswordHashCost,
        created: Date, roots: KeyRing.Roots, vault: VaultIdentifier, within limit: DerivationLimit = .none
    ) throws(Failure) -> Keybag.Slot {
        let salt = Random.bytes(PasswordHash.saltLength)
        let method = method.spellings[0]
        let cost = method.isPassphrase ? cost : PasswordHashCost(passes: 0, memory: 0)
        let key = try slotKey(method, salt: salt, cost: cost, within: limit)
        var slot = Keybag.Slot(
            identifier: identifier, kind: method.slotKind, scope: scope,
            created: VaultFormat.milliseconds(created), cost: cost, salt: salt,
            commitment: try commitment(key, vault, salt), wrapped: [])
        let wrap = try derive(key, "tokenvault 1 slot wrap", [vault.bytes])
        slot.wrapped = try seal(try secrets(of: slot, roots), wrap, slotData(slot, vault: vault))
        return slot
    }

    private static func secrets(
        of slot: Keybag.Slot, _ roots: KeyRing.Roots
    ) throws(Failure) -> [SymmetricKey] {
        if slot.scope == .afterFirstUnlock { return [roots.holder] }
        guard let all = roots.all else { throw .noRoot }
        guard slot.kind == .passphrase else { return [all] }
        guard let passcode = roots.passcode else { throw .corrupt }
        return [all, passcode]
    }

    private static func slotKey(
        _ method: UnlockMethod, salt: [UInt8], cost: PasswordHashCost, within limit: DerivationLimit
    ) throws(Failure) -> SymmetricKey {
        if case .passphrase(let passphrase) = method {
            return try passphraseKey(passphrase, salt: salt, cost: cost, within: limit)
        }
        return try wrapped { () throws(CryptoError) in
            switch method {
            case .passphrase: throw .invalidParameter
            case .keyFile(let contents):
                try Hash.key(of: contents.bytes, label: "tokenvault 1 key file", parts: [salt])
            case .secretService(let key):
                try Hash.key(of: key.bytes, label: "tokenvault 1 secret service", parts: [salt])
            case .recoveryKey(let key):
                // With 160 random bits, nothing is gained by making each guess expensive.
                try Hash.key(of: key.bytes, label: "tokenvault 1 recovery key", parts: [salt])
            }
        }
    }

    /// Derives a key by Argon2id, when there is time and memory for it. The derivation cannot be interrupted,
    /// and a program that takes more than its control group allows is killed. The memory stays taken from the
    /// budget until the key is derived, also when the client has gone.
    static func passphraseKey(
        _ passphrase: Secret, salt: [UInt8], cost: PasswordHashCost, within limit: DerivationLimit = .none
    ) throws(Failure) -> SymmetricKey {
        try limit.requireTime(for: cost)
        let memory = try limit.memory(for: cost)
        defer { withExtendedLifetime(memory) {} }
        // Waiting for other derivations may have taken the time.
        try limit.requireTime(for: cost)
        if let allowed = MemoryAllowance.remaining(), cost.memory > allowed {
            throw .memory(needed: cost.memory, allowed: allowed)
        }
        return try wrapped { () throws(CryptoError) in
            try limit.hash(passphrase.bytes, salt, cost)
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
}

extension UnlockMethod {
    var isPassphrase: Bool { slotKind == .passphrase }

    /// The method in the form of new slots and, where that differs, as it was given.
    var spellings: [UnlockMethod] {
        guard case .passphrase(let passphrase) = self else { return [self] }
        return passphrase.spellings.map { .passphrase($0) }
    }

    var slotKind: Keybag.Slot.Kind {
        switch self {
        case .passphrase: .passphrase
        case .keyFile: .keyFile
        case .secretService: .secretService
        case .recoveryKey: .recovery
        }
    }
}

extension Keybag.Slot.Kind {
    /// Whether the user has to type something to use the slot.
    var isAttended: Bool { self == .passphrase || self == .recovery }
}

extension Keybag {
    /// Whether a passphrase opens the vault.
    var hasPassphrase: Bool { slots.contains { $0.kind == .passphrase } }

    /// Returns the newest version of a class; `nil` when there is none.
    func newestVersion(of policy: UInt8, setTag: UInt64) -> UInt32? {
        let set = sets.first { DeviceKey.setTag(of: $0.device) == setTag }
        return set?.keys.filter { $0.policy == policy }.map(\.version).max()
    }

    /// A version that no class of this keybag had before: each change of the keybag makes at most one more.
    var freshVersion: UInt32 { UInt32(clamping: generation) }

    /// Whether the vault has a slot that the user has to type.
    var hasAttendedSlot: Bool { slots.contains { $0.kind.isAttended } }
}

extension Secret {
    /// The passphrase in the form of new slots and exports
    /// (``TokenVaultCrypto/SecretBytes/asOpaqueString()``), and as it was given where that differs.
    var spellings: [Secret] { [bytes.asOpaqueString().map { Secret($0) }, self].compactMap { $0 } }
}
