internal import Synchronization
public import TokenVaultCore
internal import TokenVaultCrypto

// Unlock methods: changing one rewrites the keybag and no item.
extension BlockingFileVault {
    /// The note for a list of slots or devices of a vault that was not unlocked. The value is `nil` unless both copies
    /// of the keybag are whole and differ.
    package var keybagNote: String? {
        let differ = state.withLock { ($0.opened?.keybags.whole.count ?? 1) > 1 }
        guard differ else { return nil }
        return
            "the two copies of the keybag differ, and this is the newer one: unlock the vault to see which is in use"
    }

    /// Replaces the passphrase `current` by `new`; the cost does not depend on the number of items. Older
    /// copies of the file still open with the old passphrase. Throws `wrongPassphrase` when no slot has
    /// `current`, `locked` before the first unlock, `invalidArgument` for an empty passphrase.
    public func changePassphrase(
        from current: Secret, to new: Secret
    ) throws(TokenStorageError) {
        try during("passphrase") { () throws(TokenStorageError) in
            try UnlockMethod.passphrase(current).check()
            try UnlockMethod.passphrase(new).checkAsNew()
            let cost = try configuration.keyDerivationCost.checked()
            let session = try session()
            // Both derivations are slow, so they run before the lock is taken.
            let before = try currentKeybag(session)
            let (old, roots) = try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                try KeybagKeys.openSlot(
                    of: before, with: .passphrase(current), within: configuration.derivationLimit)
            }
            guard old.kind == .passphrase else {
                throw .file(.notPermitted, .permission(.changeRecoveryKey))
            }
            let slot = try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                try KeybagKeys.makeSlot(
                    .passphrase(new), identifier: old.identifier, scope: old.scope, cost: cost,
                    created: configuration.clock(), roots: roots, vault: before.vault,
                    within: configuration.derivationLimit)
            }
            try replaceKeybag(session, roots: roots) { (keybag) throws(TokenStorageError) in
                guard let index = keybag.slots.firstIndex(of: old) else {
                    throw .file(.conflict, .changedMeanwhile(.passphrase))
                }
                keybag.slots[index] = slot
            }
        }
    }

    /// Adds an unlock method and returns its slot. The vault must be unlocked (`locked`).
    ///
    /// `scope` is the part of the items that the slot opens. By default a passphrase and a recovery key open
    /// everything, and so does a key file or a keyring in a vault that has neither. In a vault with a
    /// passphrase or a recovery key, a key file or a keyring opens only items readable after the first
    /// unlock. Existing slots stay unchanged.
    ///
    /// Throws `tooManySlots` beyond 16 slots, 8 passphrases or the bound on their cost. Throws `invalidArgument` as
    /// ``create(at:unlockMethod:configuration:)``, and for a passphrase or recovery key with a limited scope. Also
    /// throws `invalidArgument` for a method that opens a slot of the same scope already. Throws `notPermitted` when
    /// the slot that unlocked the vault does not open everything. Also throws `notPermitted` for a passphrase when the
    /// vault has one already and was unlocked otherwise: only a passphrase leads to `whenPasscodeSetThisDeviceOnly`
    /// items.
    public func addSlot(
        _ method: UnlockMethod, scope: VaultSlot.Scope? = nil
    ) throws(TokenStorageError) -> VaultSlot {
        try addSlot(method, scope: scope) { (_) throws(TokenStorageError) in }
    }

    /// Adds an unlock method as ``addSlot(_:scope:)`` does, after `handingOver` has taken its slot: a slot
    /// that could not be handed over must not open anything. If `handingOver` throws, throws its error and
    /// adds nothing.
    package func addSlot(
        _ method: UnlockMethod, scope: VaultSlot.Scope? = nil,
        handingOver: (VaultSlot) throws(TokenStorageError) -> Void
    ) throws(TokenStorageError) -> VaultSlot {
        try during("slot add") { () throws(TokenStorageError) in
            try method.checkAsNew()
            guard scope != .afterFirstUnlock || !method.slotKind.isAttended else {
                throw .file(.invalidArgument, .limit(.slotScope))
            }
            let cost = try configuration.keyDerivationCost.checked()
            let session = try session()
            let held = try heldRoots(session)
            var roots = held
            let before = try currentKeybag(session)
            let isFirstPassphrase = method.isPassphrase && !before.hasPassphrase
            if method.isPassphrase, !isFirstPassphrase, held.passcode == nil {
                throw .file(.notPermitted, .permission(.passphraseToReplace))
            }
            if isFirstPassphrase {
                let passcode: SymmetricKey
                do throws(CryptoError) { passcode = try .random() } catch { throw .crypto(error) }
                roots = KeyRing.Roots(all: held.all, holder: held.holder, passcode: passcode)
            }
            let slotScope = before.scope(of: method, wanted: scope)
            if let slot = try existingSlot(of: before, openedBy: method, slotScope) {
                try session.log.requireWritable()
                throw .file(
                    .invalidArgument, .slotExists(.init(id: Int(slot.identifier), kind: VaultSlot(slot).kind))
                )
            }
            let made = try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                try KeybagKeys.makeSlot(
                    method, identifier: before.nextSlot,
                    scope: slotScope, cost: cost,
                    created: configuration.clock(), roots: roots, vault: before.vault,
                    within: configuration.derivationLimit)
            }
            let finalRoots = roots
            try handingOver(VaultSlot(made))
            try replaceKeybag(session, roots: roots) { (keybag) throws(TokenStorageError) in
                guard keybag.nextSlot == before.nextSlot else {
                    throw .file(.conflict, .changedMeanwhile(.slotAdded))
                }
                if isFirstPassphrase {
                    guard !keybag.hasPassphrase else {
                        throw .file(.conflict, .changedMeanwhile(.passphraseAdded))
                    }
                    try addPasscodeClass(to: &keybag, roots: finalRoots)
                }
                try keybag.append(made)
            }
            return VaultSlot(made)
        }
    }

    /// Returns the slot of the same scope that `method` opens already; `nil` when there is none.
    private func existingSlot(
        of keybag: Keybag, openedBy method: UnlockMethod, _ scope: Keybag.Slot.Scope
    ) throws(TokenStorageError) -> Keybag.Slot? {
        try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
            for slot in keybag.slots where slot.kind == method.slotKind && slot.scope == scope {
                let roots = try KeybagKeys.open(
                    slot, of: keybag.vault, with: method, within: configuration.derivationLimit)
                if roots != nil { return slot }
            }
            return nil
        }
    }

    /// Removes an unlock method. The vault must be unlocked (`locked`). Removing the last passphrase destroys
    /// every `whenPasscodeSetThisDeviceOnly` item. Older copies of the file still open with the removed
    /// method. Throws `slotNotFound`, and `lastSlot`, also when no slot would be left that opens everything.
    /// Throws `notPermitted` when the slot that unlocked the vault does not open everything.
    public func removeSlot(_ id: Int) throws(TokenStorageError) {
        try during("slot remove") { () throws(TokenStorageError) in
            let session = try session()
            let roots = try heldRoots(session)
            var removedLastPassphrase = false
            do throws(TokenStorageError) {
                try replaceKeybag(session, roots: roots) { (keybag) throws(TokenStorageError) in
                    guard let index = keybag.slots.firstIndex(where: { Int($0.identifier) == id }) else {
                        throw .file(.slotNotFound)
                    }
                    guard keybag.slots.count > 1 else { throw .file(.lastSlot) }
                    let had = keybag.hasPassphrase
                    keybag.slots.remove(at: index)
                    guard keybag.slots.contains(where: { $0.scope == .all }) else {
                        throw .file(.lastSlot, .permission(.lastFullSlot))
                    }
                    guard had, !keybag.hasPassphrase else { return }
                    // The pepper that wraps the class goes first, durably, then the class. At no point does a
                    // keybag without a passphrase still lead to these items.
                    if try !isCopy() { try secretStore?.removePepper() }
                    removedLastPassphrase = true
                    keybag.removePasscodeClasses()
                }
            } catch {
                guard removedLastPassphrase else { throw error }
                throw .file(.outcomeUnknown, .passcodeItemsDeleted(until: .slotRemoval, error.reason))
            }
            if removedLastPassphrase { try session.removeDestroyedItems() }
        }
    }

    /// Makes the passcode class for this device, with a new pepper. The caller holds the writers' lock: two
    /// processes that add the first passphrase at once must not remove each other's pepper.
    func addPasscodeClass(
        to keybag: inout Keybag, roots: KeyRing.Roots
    ) throws(TokenStorageError) {
        // The pepper on this device is the original vault's, whose items are lost without it.
        guard let store = secretStore, try !isCopy(), let device = try store.load().device,
            let index = keybag.sets.firstIndex(where: { $0.device == device.identifier })
        else { return }
        let secrets = KeybagKeys.DeviceSecrets(device: device, pepper: try store.makePepper())
        let (vault, version) = (keybag.vault, keybag.freshVersion)
        keybag.sets[index].keys.append(
            try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                try KeybagKeys.freshClass(
                    .whenPasscodeSetThisDeviceOnly, version: version, vault: vault, roots: roots,
                    secrets: secrets)
            })
    }
}

extension Keybag {
    mutating func removePasscodeClasses() {
        for set in sets.indices {
            sets[set].keys.removeAll { $0.policy == AccessPolicy.whenPasscodeSetThisDeviceOnly.number }
            sets[set].olderRoots?.passcode = []
        }
    }

    /// Returns the scope of a new slot for `method`.
    fileprivate func scope(of method: UnlockMethod, wanted: VaultSlot.Scope?) -> Slot.Scope {
        switch wanted {
        case .all: .all
        case .afterFirstUnlock: .afterFirstUnlock
        case nil: method.slotKind.isAttended || !hasAttendedSlot ? .all : .afterFirstUnlock
        }
    }

    /// Adds a slot within the bounds that readers insist on. Throws `tooManySlots`.
    fileprivate mutating func append(_ slot: Slot) throws(TokenStorageError) {
        guard nextSlot < .max else { throw .file(.tooManySlots) }
        slots.append(slot)
        nextSlot += 1
        try checkBounds()
    }

    /// Throws `tooManySlots` for slots that readers would reject.
    func checkBounds() throws(TokenStorageError) {
        let work = slots.reduce(UInt64(0)) { $0 + UInt64($1.cost.passes) * $1.cost.memory }
        guard slots.count <= Self.maximumSlots, work <= Self.maximumWork,
            slots.count(where: { $0.kind == .passphrase }) <= Self.maximumPassphrases
        else { throw .file(.tooManySlots) }
    }
}
