internal import TokenVaultCore
internal import TokenVaultCrypto

// The keybag of the new file: unlock methods and devices.
extension MergedItems {
    /// Throws `conflict` where the new file would open with an unlock method that a key rotation in the other
    /// file locked out.
    mutating func checkSlots() throws(TokenStorageError) {
        let (mine, other, hasSameRoot) = (keybag, theirs.keybag, hasSameRoot)
        func isSame(_ slot: Keybag.Slot, _ another: Keybag.Slot) -> Bool {
            // A rotation writes every slot again.
            slot.identifier == another.identifier
                && (hasSameRoot ? slot.commitment == another.commitment : slot.created == another.created)
        }
        let removed = mine.slots.filter { slot in
            slot.identifier < other.nextSlot && !other.slots.contains { isSame($0, slot) }
        }
        guard hasSameRoot else {
            func version(_ keybag: Keybag) -> UInt32 {
                let portable = keybag.sets.first { $0.device == Keybag.ClassSet.portable }
                return portable?.keys.map(\.version).max() ?? 0
            }
            if version(other) > version(mine) {
                // A copy that has all of this file's commits can take its place, with its keys.
                guard plan.hasAllOfOurs else { throw .file(.conflict, .ancestry(.keysRotatedInCopy)) }
                keybag = other
                hasKeysOfTheirs = true
                report.notes.append("the keys were rotated in the copy: the unlock methods are the copy's")
                for slot in removed {
                    let isReplaced = other.slots.contains { $0.identifier == slot.identifier }
                    report.notes.append(
                        "slot \(slot.identifier) of the vault is \(isReplaced ? "replaced" : "removed"), as in the copy"
                    )
                }
                return
            }
            if let slot = removed.first {
                let isReplaced = other.slots.contains { $0.identifier == slot.identifier }
                throw .file(.conflict, .ancestry(isReplaced ? .slotReplacedInCopy : .slotRemovedInCopy))
            }
            keybag.nextSlot = max(mine.nextSlot, other.nextSlot)
            return
        }
        for slot in removed {
            report.notes.append("slot \(slot.identifier) of the vault is not in the copy, and stays")
        }
        for slot in other.slots where !mine.slots.contains(where: { isSame($0, slot) }) {
            report.notes.append("slot \(slot.identifier) of the copy is not taken over")
        }
        keybag.nextSlot = max(mine.nextSlot, other.nextSlot)
    }

    /// Takes over the devices that were enrolled, renewed or removed in the other file. A removed device stays
    /// while this file has items of it that the other file never had. A removal can be repeated; a lost item
    /// cannot be stored again.
    mutating func takeDevices() throws(TokenStorageError) {
        let (own, other) = (ours.ring.facts.deviceTag, theirs.keybag)
        func isOwn(_ set: Keybag.ClassSet) -> Bool { DeviceKey.setTag(of: set.device) == own }
        if hasKeysOfTheirs, ours.keybag.sets.contains(where: isOwn), !keybag.sets.contains(where: isOwn) {
            report.notes.append(
                "this device was removed in the copy: run \"vaultctl device enrol\", then merge the file that is kept"
            )
        }
        for set in keybag.sets where other.removedDevices.contains(where: { $0.isOf(set) }) {
            let name = set.device.hexadecimal
            guard !isOwn(set) else {
                report.notes.append("device \(name), this one, was removed in the copy, and stays enrolled")
                continue
            }
            guard try !hasItemsUnknownToTheirs(of: set) else {
                report.notes.append(
                    "device \(name) was removed in the copy, has stored items since, and stays enrolled: \"vaultctl device "
                        + "remove \(name)\" removes it with them")
                continue
            }
            keybag.removeDevice(set)
            report.notes.append("device \(name) is removed, as in the copy")
        }
        for set in other.sets where set.device != Keybag.ClassSet.portable {
            let name = set.device.hexadecimal
            if let index = keybag.sets.firstIndex(where: { $0.device == set.device }) {
                if hasSameRoot, set.replaces(keybag.sets[index]) {
                    keybag.sets[index] = set
                } else if set.enrolled != keybag.sets[index].enrolled, !isOwn(set) {
                    report.notes.append(
                        "device \(name) enrolled again in the copy, and stays here as it was until that device merges "
                            + "this vault")
                }
            } else if keybag.removedDevices.contains(where: { $0.isOf(set) }) {
                report.notes.append(
                    "device \(name) of the copy was removed from the vault: to have its items here, run \"vaultctl device "
                        + "enrol\" on it, then merge the copy there")
            } else if hasSameRoot, keybag.sets.count < Keybag.maximumSets {
                keybag.sets.append(set)
                report.notes.append("device \(name) of the copy is taken over")
            } else if !hasSameRoot, DeviceKey.setTag(of: set.device) == theirs.ring.facts.deviceTag {
                report.notes.append(
                    "the keys were rotated since this device enrolled in the copy: run \"vaultctl device enrol\", "
                        + "then merge the copy again")
            } else {
                report.notes.append("device \(name) of the copy is not in the vault: enrol it again")
            }
        }
        keybag.remember(removed: other.removedDevices)
    }

    /// Returns whether this file has items of a device that the other file has never had.
    private func hasItemsUnknownToTheirs(of set: Keybag.ClassSet) throws(TokenStorageError) -> Bool {
        let tag = DeviceKey.setTag(of: set.device)
        var scanner = ours.scanner()
        for (item, entry) in ours.items where entry.setTag == tag {
            if try !plan.isKnownToTheirs(item, plan.ours.version(entry, &scanner)) { return true }
        }
        return false
    }
}
