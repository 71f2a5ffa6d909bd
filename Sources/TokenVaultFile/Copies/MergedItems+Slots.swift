internal import TokenVaultCore
internal import TokenVaultCrypto

// The keybag of the new file: its unlock methods.
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
            // A copy that has all of this file's commits can take its place, with its keys.
            if plan.hasAllOfOurs || version(other) > version(mine) {
                guard plan.hasAllOfOurs else { throw .file(.conflict, .ancestry(.keysRotatedInCopy)) }
                // Nothing can be left out of a file that is taken as it is.
                guard !other.sets.contains(where: mine.hasRemoved) else {
                    throw .file(.conflict, .ancestry(.removedDeviceInCopy))
                }
                keybag = other
                hasKeysOfTheirs = true
                report.notes.append("the keys were rotated in the copy: the unlock methods are the copy's")
                for slot in other.slots
                where !mine.slots.contains(where: { $0.identifier == slot.identifier }) {
                    report.notes.append("slot \(slot.identifier) of the copy opens the vault from now on")
                }
                for slot in removed {
                    let isReplaced = other.slots.contains { $0.identifier == slot.identifier }
                    report.notes.append(
                        "slot \(slot.identifier) of the vault is \(isReplaced ? "replaced" : "removed"), as in the copy"
                    )
                }
                return
            }
            for slot in removed {
                guard let another = other.slots.first(where: { $0.identifier == slot.identifier }) else {
                    throw .file(.conflict, .ancestry(.slotRemovedInCopy))
                }
                // The later of the two took the place of one that a rotation may have locked out.
                guard slot.created > another.created else {
                    throw .file(.conflict, .ancestry(.slotReplacedInCopy))
                }
                report.notes.append(
                    "slot \(slot.identifier) of the vault is newer than the copy's, and stays")
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

    /// Takes over how many replaced values the vault keeps: from the copy, where that has all of this file's commits.
    /// Where both devices may have decided, the larger number loses nothing.
    mutating func takeKeptValues() {
        let number = theirs.keybag.keptValues
        guard hasSameRoot, number != keybag.keptValues, !plan.hasAllOfTheirs,
            plan.hasAllOfOurs || number > keybag.keptValues
        else { return }
        keybag.keptValues = number
        report.notes.append("the vault keeps \(number) replaced values of each item, as the copy does")
    }
}
