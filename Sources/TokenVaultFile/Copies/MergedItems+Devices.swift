internal import TokenVaultCore
internal import TokenVaultCrypto

// The keybag of the new file: its devices.
//
// | this file | other file | the new file has |
// |---|---|---|
// | a set | none | the set |
// | a set | none, removed | the set, while this file has items that need it or the set is ours; else none |
// | none | a set | the set, while there is room |
// | none, removed | a set | none |
// | a set | a set | the set that precedes, with those keys of the other that items need |
// | a set | a set, in a file that has all of this file or has removed this set | the other file's |
//
// Where the last two would lose items, this file's set stays.
//
// A set of other roots is never taken.
extension MergedItems {
    /// Takes over the devices that were enrolled, renewed or removed in the other file, unless this file has items
    /// that would lose their keys. A removal can be repeated; a lost item cannot be stored again.
    mutating func takeDevices() throws(TokenStorageError) {
        // Removed devices come first: sets that do not fit beside them stay out.
        let removed = theirs.keybag.removedDevices.filter {
            hasSameRoot || keybag.sets.contains(where: $0.isOf)
        }
        if !keybag.change({ $0.remember(removed: removed) }) {
            report.notes.append("the vault has no room to note which devices were removed in the copy")
        }
        if hasKeysOfTheirs {
            noteOwnRemoval()
        } else {
            for set in keybag.sets where set.device != Keybag.ClassSet.portable { try settle(set) }
        }
        for set in theirs.keybag.sets where !keybag.sets.contains(where: { $0.device == set.device }) {
            add(set)
        }
    }

    /// Whether an enrolment of the vault ended in the other file. Under other roots only that enrolment counts, no
    /// later one: a holder of keys that were rotated since may have made that file.
    private func isRemovedInTheirs(_ set: Keybag.ClassSet) -> Bool {
        hasSameRoot ? theirs.keybag.hasRemoved(set) : theirs.keybag.removedDevices.contains { $0.isOf(set) }
    }

    private func isOwn(_ set: Keybag.ClassSet) -> Bool {
        DeviceKey.setTag(of: set.device) == ours.ring.facts.deviceTag
    }

    private mutating func noteOwnRemoval() {
        guard ours.keybag.sets.contains(where: isOwn), !keybag.sets.contains(where: isOwn) else { return }
        report.notes.append(
            "this device was removed in the copy: run \"vaultctl device enrol\", then merge the previous file"
        )
    }

    /// Decides between this file's set of a device and the other file's.
    private mutating func settle(_ set: Keybag.ClassSet) throws(TokenStorageError) {
        let isRemoved = isRemovedInTheirs(set)
        let name = set.device.hexadecimal
        guard let other = theirs.keybag.sets.first(where: { $0.device == set.device }), hasSameRoot else {
            guard isRemoved else { return }
            guard !isOwn(set) else {
                report.notes.append("this device (\(name)) was removed in the copy, but stays enrolled")
                return
            }
            guard try replace(set, by: nil) else {
                report.notes.append(
                    "device \(name) was removed in the copy, but stays enrolled, because its items here would be lost: "
                        + "\"vaultctl device remove \(name)\" removes both")
                return
            }
            report.notes.append("device \(name) is removed, as in the copy")
            return
        }
        let candidate = usable(other, beside: set)
        let isSameEnrolment = candidate.enrolled == set.enrolled
        // A copy that has all of this file has decided already.
        guard candidate.precedes(set) || plan.isDescendantOfOurs || isRemoved && !isSameEnrolment,
            isSameEnrolment || !ours.keybag.hasRemoved(candidate)
        else { return try extend(set, by: candidate) }
        guard try !replace(set, by: candidate) else { return }
        try extend(set, by: candidate)
        report.notes.append(
            "device \(name) has other keys in the copy: the vault keeps its own until that device merges this vault"
        )
    }

    /// Takes over a device that only the other file has, if possible.
    private mutating func add(_ set: Keybag.ClassSet) {
        let name = set.device.hexadecimal
        let candidate = usable(set, beside: nil)
        if ours.keybag.hasRemoved(set) {
            report.notes.append(
                isOwn(set)
                    ? "this device (\(name)) was removed from the vault: run \"vaultctl device enrol\", then merge "
                        + "the copy again"
                    : "device \(name) was removed from the vault: for its items, copy this vault to it, "
                        + "run \"vaultctl device enrol\" and merge the copy there")
        } else if hasSameRoot, keybag.change({ $0.sets.append(candidate) }) {
            report.notes.append("device \(name) of the copy was added")
        } else if !hasSameRoot, DeviceKey.setTag(of: set.device) == theirs.ring.facts.deviceTag {
            report.notes.append(
                "the keys were rotated since this device enrolled in the copy: run \"vaultctl device enrol\", "
                    + "then merge the copy again")
        } else {
            report.notes.append("device \(name) of the copy is not in the vault: enrol it again")
        }
    }

    // MARK: - Sets

    /// Returns the other file's set with the passcode classes that the slots of this file lead to.
    private func usable(_ other: Keybag.ClassSet, beside set: Keybag.ClassSet?) -> Keybag.ClassSet {
        var result = other
        if let set, set.olderRoots?.all == other.olderRoots?.all { result.olderRoots = set.olderRoots }
        guard !hasPasscodeRootOfTheirs else { return result }
        if set?.olderRoots?.all != other.olderRoots?.all { result.olderRoots?.passcode = [] }
        result.keys.removeAll(where: \.isPasscodeClass)
        for key in set?.keys ?? [] where key.isPasscodeClass {
            if let set, result.canHold(key, of: set) { result.keys.append(key) }
        }
        return result
    }

    /// Whether the passphrases of this file lead to the passcode root of the other file. Where that cannot be told,
    /// they do not.
    private var hasPasscodeRootOfTheirs: Bool {
        guard keybag.hasPassphrase else { return false }
        let passphrases = keybag.slots.filter { $0.kind == .passphrase }
        if passphrases.contains(where: theirs.keybag.slots.contains) { return true }
        guard let mine = ours.roots.passcode, let other = theirs.roots.passcode,
            let bytes = SymmetricKey.concatenating([mine]), let others = SymmetricKey.concatenating([other])
        else { return false }
        return bytes.isEqual(to: others)
    }

    /// Puts `other` in the place of this file's set of the device, or removes the set. Where an item of this file
    /// would lose its keys, takes these along if possible; else changes nothing, and returns false.
    private mutating func replace(
        _ set: Keybag.ClassSet, by other: Keybag.ClassSet?
    ) throws(TokenStorageError) -> Bool {
        let before = keybag
        let ended = theirs.keybag.removedDevices.filter { $0.isOf(set) }
        let hasRoom = keybag.change { keybag in
            if let other {
                keybag.put(other)
                keybag.remember(removed: ended)
            } else {
                keybag.removeDevice(set)
            }
        }
        guard hasRoom else { return false }
        let tag = DeviceKey.setTag(of: set.device)
        var (ourScanner, theirScanner) = (ours.scanner(), theirs.scanner())
        for (item, entry) in ours.items where entry.setTag == tag && !canKeep(entry) {
            let their = try theirs.entry(of: item).map { (entry) throws(TokenStorageError) in
                try plan.theirs.version(entry, &theirScanner)
            }
            let isDispensable =
                switch plan.choice(item, ours: try plan.ours.version(entry, &ourScanner), theirs: their) {
                case .deleted: true
                case .same: their.map { canTake($0.entry) } ?? false
                case .theirs(let their): canTake(their.entry)
                case .ours, .both: false
                }
            guard isDispensable || keybag.addKeys(of: entry, from: set) else {
                keybag = before
                return false
            }
        }
        return true
    }

    /// Adds those keys of the other file's set of a device to this file's that items need which this file lacks.
    private mutating func extend(
        _ set: Keybag.ClassSet, by other: Keybag.ClassSet
    ) throws(TokenStorageError) {
        let tag = DeviceKey.setTag(of: set.device)
        var (ourScanner, theirScanner) = (ours.scanner(), theirs.scanner())
        for (item, entry) in theirs.items where entry.setTag == tag && !canTake(entry) {
            let our = try ours.entry(of: item).map { (entry) throws(TokenStorageError) in
                try plan.ours.version(entry, &ourScanner)
            }
            switch plan.choice(item, ours: our, theirs: try plan.theirs.version(entry, &theirScanner)) {
            case .theirs, .both: _ = keybag.addKeys(of: entry, from: other)
            case .same, .ours, .deleted: break
            }
        }
    }
}

extension Keybag {
    /// Puts a set in the place of the device's.
    fileprivate mutating func put(_ set: ClassSet) {
        guard let index = sets.firstIndex(where: { $0.device == set.device }) else { return }
        sets[index] = set
    }

    /// Makes a change unless the keybag would outgrow its bounds. Returns whether it did.
    fileprivate mutating func change(_ body: (inout Keybag) -> Void) -> Bool {
        var changed = self
        body(&changed)
        guard changed.encoded() != nil else { return false }
        self = changed
        return true
    }

    /// Adds the keys of an item to its device's set, with the key that proves the origin of its policy. Returns false
    /// where they cannot be in that set, or `set` does not have them.
    fileprivate mutating func addKeys(of entry: IndexEntry, from set: ClassSet) -> Bool {
        guard let index = sets.firstIndex(where: { $0.device == set.device }) else { return false }
        func add(_ policy: UInt8) -> Bool {
            let key = set.keys.first { $0.policy == policy && $0.version == entry.keyVersion }
            guard let key else { return false }
            if sets[index].keys.contains(key) { return true }
            return sets[index].canHold(key, of: set) && change { $0.sets[index].keys.append(key) }
        }
        guard add(entry.policy) else { return false }
        if let gate = AccessPolicy(number: entry.policy).flatMap(PolicyProof.gate) { _ = add(gate.number) }
        return true
    }
}
