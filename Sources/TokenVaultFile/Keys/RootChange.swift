internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// A keybag with a new root key in the making: the slots that stay, and the roots that they lead to.
struct RootChange {
    let before: Keybag
    let cost: PasswordHashCost
    let created: Date
    let limit: DerivationLimit
    /// The slots that stay, the method of each from now on, and whether that is a new method.
    private var kept: [(slot: Keybag.Slot, new: UnlockMethod, isReplaced: Bool)] = []
    private var passcode: SymmetricKey?
    private(set) var removed: [VaultSlot] = []
    private(set) var fresh: KeyRing.Roots?
    private(set) var after: Keybag

    init(before: Keybag, cost: PasswordHashCost, created: Date, limit: DerivationLimit) {
        self.limit = limit
        self.before = before
        self.cost = cost
        self.created = created
        after = before
    }

    /// Decides which slots stay. Derives a key for each passphrase, which is slow.
    mutating func choose(
        _ methods: [(old: UnlockMethod, new: UnlockMethod)], removing ids: Set<Int>, droppingOthers: Bool
    ) throws(TokenStorageError) {
        let known = Set(before.slots.map { Int($0.identifier) })
        guard ids.isSubset(of: known) else { throw .file(.slotNotFound) }
        var lost: [VaultSlot] = []
        for slot in before.slots {
            if ids.contains(Int(slot.identifier)) {
                removed.append(VaultSlot(slot))
            } else if try !keep(slot, methods) {
                lost.append(VaultSlot(slot))
            }
        }
        guard lost.isEmpty || droppingOthers else {
            throw .file(.notPermitted, .slotWouldBeLost(lost.map { .init(id: $0.id, kind: $0.kind) }))
        }
        removed += lost
        guard kept.contains(where: { $0.slot.scope == .all }) else { throw .file(.lastSlot) }
    }

    private mutating func keep(
        _ slot: Keybag.Slot, _ methods: [(old: UnlockMethod, new: UnlockMethod)]
    ) throws(TokenStorageError) -> Bool {
        for method in methods {
            let old = method.old.asTyped(for: slot.kind)
            guard old.slotKind == slot.kind else { continue }
            let (vault, limit) = (before.vault, limit)
            let roots = try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                try KeybagKeys.open(slot, of: vault, with: old, within: limit)
            }
            guard let roots else { continue }
            if let root = roots.passcode { passcode = root }
            let isReplaced = !method.old.isSame(as: method.new)
            kept.append((slot, isReplaced ? method.new : old, isReplaced))
            return true
        }
        return false
    }

    /// Makes the new keybag, from the roots `held` and this device's `secrets`.
    mutating func derive(
        from held: KeyRing.Roots, slot: UInt32, secrets: KeybagKeys.DeviceSecrets
    ) throws(TokenStorageError) {
        var made = before
        let (kept, passcode) = (kept, passcode)
        let (cost, created, before, limit) = (cost, created, before, limit)
        fresh = try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
            let hasPassphrase = kept.contains { $0.slot.kind == .passphrase }
            let fresh = try KeybagKeys.freshRoots(withPasscode: hasPassphrase, vault: before.vault)
            made.slots = []
            for (slot, method, isReplaced) in kept {
                var new = try KeybagKeys.makeSlot(
                    method, identifier: slot.identifier, scope: slot.scope,
                    cost: isReplaced ? cost : slot.cost.raisedToMinimum,
                    created: isReplaced
                        ? created : Date(timeIntervalSince1970: Double(slot.created) / 1_000),
                    roots: fresh, vault: before.vault, within: limit)
                new.identifier = slot.identifier
                made.slots.append(new)
            }
            if !hasPassphrase { made.removePasscodeClasses() }
            // The keys that this device opens with all given methods, including the passcode class.
            let old = KeyRing.Roots(all: held.all, holder: held.holder, passcode: passcode ?? held.passcode)
            let ring = try KeybagKeys.ring(
                of: before, slot: slot, roots: try old.copied(), secrets: secrets)
            defer { ring.wipeEverything() }
            try KeybagKeys.renew(
                &made, from: old, to: fresh,
                held: ring.held.filter { hasPassphrase || $0.policy != .whenPasscodeSetThisDeviceOnly },
                secrets: secrets)
            return fresh
        }
        try made.checkBounds()
        after = try recordingSuccession(in: made, from: held)
    }

    /// Returns `keybag` with a record of the roots `held`, which the new ones replace, and of as many earlier ones as it
    /// has room for.
    private func recordingSuccession(
        in keybag: Keybag, from held: KeyRing.Roots
    ) throws(TokenStorageError) -> Keybag {
        guard let fresh else { throw .file(.internalError) }
        var keybag = keybag
        let before = before
        keybag.formerRoots = .init()
        for limit in (1...Keybag.FormerRoots.most).reversed() {
            try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                try KeybagKeys.record(before, under: held, in: &keybag, under: fresh, limit: limit)
            }
            if keybag.encoded() != nil { return keybag }
            keybag.formerRoots = .init()
        }
        throw .file(.tooManySlots, .slots(.keysFull))
    }

    /// Wipes the roots: the ring has copies of its own.
    func wipe() {
        fresh?.all?.wipe()
        fresh?.holder.wipe()
        fresh?.passcode?.wipe()
    }
}

extension PasswordHashCost {
    /// The cost, raised to the least that writers accept: the slot is made anyway.
    fileprivate var raisedToMinimum: PasswordHashCost {
        PasswordHashCost(
            passes: max(passes, Self.minimum.passes), memory: max(memory, Self.minimum.memory))
    }
}

extension UnlockMethod {
    /// Returns the typed method for a slot of `kind`: the text of a recovery key is one.
    fileprivate func asTyped(for kind: Keybag.Slot.Kind) -> UnlockMethod {
        guard kind == .recovery, case .passphrase(let text) = self,
            case .key(let key) = RecoveryKey.read(text.spellings[0])
        else { return self }
        return .recoveryKey(key)
    }

    fileprivate func isSame(as other: UnlockMethod) -> Bool {
        switch (self, other) {
        case (.passphrase(let one), .passphrase(let two)), (.keyFile(let one), .keyFile(let two)),
            (.secretService(let one), .secretService(let two)):
            one == two
        case (.recoveryKey(let one), .recoveryKey(let two)): one.text == two.text
        default: false
        }
    }
}
