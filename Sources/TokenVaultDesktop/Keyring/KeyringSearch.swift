internal import TokenVaultCore

/// What a search found in every keyring, and what counts of it.
///
/// Of several items of one key, the item in the chosen keyring counts. Next comes the item of the highest generation,
/// and then the item whose path comes last. So processes that chose the same keyring find the same item.
struct KeyringSearch {
    /// The collection that new items go to; `nil` when there is none.
    let home: String?
    /// Whether that one is locked.
    let isHomeLocked: Bool
    /// Items of ours.
    private(set) var ours: [TokenKey: KeyringAccess.Found] = [:]
    /// Items of other programs, if they are looked for.
    private(set) var others: [TokenKey: KeyringAccess.Found] = [:]
    /// The paths of those of ours, or that may be, in locked keyrings.
    private(set) var locked: [String] = []
    /// The paths of those of other programs in locked keyrings.
    private(set) var lockedOthers: [String] = []
    /// Items that have no service and account.
    var nameless = 0

    init(home: String?, isHomeLocked: Bool) {
        self.home = home
        self.isHomeLocked = isHomeLocked
    }

    /// Whether the chosen keyring is locked and has something that counts before all that was found.
    var isHiddenAtHome: Bool { locked.contains { KeyringItem.collection(of: $0) == home } }

    /// How many items of other programs are no key's: an item of ours counts, or another one of theirs, or they
    /// are nameless.
    var passedOver: Int {
        nameless
            + others.reduce(0) { count, other in
                count + other.value.duplicates.count + (ours[other.key] == nil ? 0 : 1)
            }
    }

    /// An item of an unlocked keyring.
    mutating func add(_ item: KeyringItem) {
        if item.isOthers {
            keep(item, in: &others)
        } else {
            keep(item, in: &ours)
        }
    }

    /// An item of a locked keyring.
    mutating func add(locked path: String, _ owner: KeyringItem.Owner) {
        switch owner {
        case .ours, .unknown: locked.append(path)
        case .others: lockedOthers.append(path)
        case .neither: nameless += 1
        }
    }

    private func keep(_ item: KeyringItem, in all: inout [TokenKey: KeyringAccess.Found]) {
        let key = item.metadata.key
        guard var found = all[key] else {
            all[key] = KeyringAccess.Found(item: item)
            return
        }
        if counts(item, before: found.item) {
            found.duplicates.append(found.item.path)
            found.item = item
        } else {
            found.duplicates.append(item.path)
        }
        all[key] = found
    }

    private func counts(_ item: KeyringItem, before other: KeyringItem) -> Bool {
        let isAtHome = KeyringItem.collection(of: item.path) == home
        guard isAtHome == (KeyringItem.collection(of: other.path) == home) else { return isAtHome }
        let (new, old) = (item.metadata.generation, other.metadata.generation)
        return new > old || (new == old && Self.isLater(item.path, than: other.path))
    }

    /// Services number their items: 101 is later than 99.
    private static func isLater(_ path: String, than other: String) -> Bool {
        let (length, otherLength) = (path.utf8.count, other.utf8.count)
        return length == otherLength ? path > other : length > otherLength
    }
}
