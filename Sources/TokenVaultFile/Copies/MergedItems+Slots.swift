internal import TokenVaultCore
internal import TokenVaultCrypto

// The keybag of the new file: its unlock methods.
extension MergedItems {
    /// Throws `conflict` where the new file would open with an unlock method that a key rotation in the other
    /// file locked out. `known` are the roots that this device knows of the vault.
    mutating func checkSlots(_ known: RootNames) throws(TokenStorageError) {
        let (mine, other, hasSameRoot) = (keybag, theirs.keybag, hasSameRoot)
        let isRotatedHere = ours.succession.follows(theirs.succession.present)
        func isSame(_ slot: Keybag.Slot, _ another: Keybag.Slot) -> Bool {
            // A rotation writes every slot again.
            slot.identifier == another.identifier
                && (hasSameRoot ? slot.commitment == another.commitment : slot.created == another.created)
        }
        let removed = mine.slots.filter { slot in
            slot.identifier < other.nextSlot && !other.slots.contains { isSame($0, slot) }
        }
        if !hasSameRoot {
            // A copy under later keys that has all of this file's commits can take its place, with its keys.
            let isRotatedInTheirs = theirs.succession.follows(ours.succession.present)
            let isTheVaults = theirs.succession.follows(known) && !ours.succession.follows(known)
            if isTheVaults || isRotatedInTheirs && (plan.hasAllOfOurs || !isRotatedHere) {
                guard plan.hasAllOfOurs else { throw .file(.conflict, .ancestry(.keysRotatedInCopy)) }
                // The new file would be the copy as a whole, and could not leave out a removed device.
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
            report.notes.append(
                "the copy has other keys, as before a key rotation: a removed unlock method may have written it; "
                    + "check what the merge takes and deletes")
        }
        try recordRootsOfTheirs(known)
        if !hasSameRoot, !isRotatedHere {
            for slot in removed {
                guard let another = other.slots.first(where: { $0.identifier == slot.identifier }) else {
                    throw .file(.conflict, .ancestry(.slotRemovedInCopy))
                }
                // The later slot replaced a slot that a rotation may have locked out.
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
            report.notes.append("slot \(slot.identifier) of the copy was not added")
        }
        keybag.nextSlot = max(mine.nextSlot, other.nextSlot)
    }

    /// Records that the roots of the vault also replaced the roots that the copy is under or lists. Then the devices
    /// that know the copy's roots take the merged file. Where the keybag has no room, adds a note to the report
    /// instead.
    private mutating func recordRootsOfTheirs(_ known: RootNames) throws(TokenStorageError) {
        let before = try succession()
        guard !Set(theirs.succession.all).isSubset(of: before.all) else { return }
        var keybag = keybag
        let (ours, theirs) = (ours, theirs)
        try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
            try KeybagKeys.record(theirs.keybag, under: theirs.roots, in: &keybag, under: ours.roots)
        }
        guard keybag.encoded() != nil else {
            report.notes.append(
                "the vault has no room to note the copy's keys: run \"vaultctl adopt\" with the merged file on the other device"
            )
            return
        }
        let former = self.keybag
        self.keybag = keybag
        // Without room for all roots, every merge keeps the same ones, and the roots that this device knows.
        let after = try succession()
        if Set(after.all) == Set(before.all) || !after.follows(known) { self.keybag = former }
    }

    /// Returns the names of the roots of the new keybag, and of those before them.
    func succession() throws(TokenStorageError) -> Succession {
        let (keybag, roots) = (keybag, hasKeysOfTheirs ? theirs.roots : ours.roots)
        return try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
            try KeybagKeys.succession(of: keybag, under: roots)
        }
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
