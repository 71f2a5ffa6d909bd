internal import TokenVaultCore
internal import TokenVaultCrypto

/// The names of a keybag's roots, the newest first: its own, and those that key rotations replaced.
///
/// With an old root and a newer file, an attacker can write a file that lists all commits, since rotations keep the
/// log key. A name is a hash of a key that only the holder of a root can derive. So a file that lists the
/// name of a root was made with that root, or with one that replaced it.
struct Succession: Equatable, Sendable {
    /// Empty where the unlock method does not lead to the root.
    var all: [RootNames.Name] = []
    var holder: [RootNames.Name] = []

    /// The names of the keybag's own roots.
    var present: RootNames { RootNames(all: all.first, holder: holder.first) }

    /// Returns whether the keybag is under the roots that `names` are of, or under roots that replaced them. A name
    /// that is not known on either side is not compared.
    func follows(_ names: RootNames) -> Bool {
        func isIn(_ list: [RootNames.Name], _ name: RootNames.Name?) -> Bool {
            guard let name, !list.isEmpty else { return true }
            return list.contains(name)
        }
        return isIn(all, names.all) && isIn(holder, names.holder)
    }

    /// Returns the names for a record that had `names`: those of this keybag where it follows them.
    func names(after names: RootNames) -> RootNames {
        guard follows(names) else { return names }
        return RootNames(all: present.all ?? names.all, holder: present.holder ?? names.holder)
    }
}

/// The names of the two roots that a keybag is under; `nil` where a root is not known.
struct RootNames: Equatable, Sendable {
    typealias Name = Bytes16

    var all: Name?
    var holder: Name?
}

// The record of the roots that key rotations replaced.
extension KeybagKeys {
    /// Returns the names of the roots of `keybag`, which is authentic under `roots`.
    static func succession(
        of keybag: Keybag, under roots: KeyRing.Roots
    ) throws(Failure) -> Succession {
        var succession = Succession()
        for root in Root.allCases {
            let keys = try successionKeys(of: keybag, root, under: roots)
            defer { for key in keys { key.wipe() } }
            let names = try keys.map { (key) throws(Failure) in try name(of: key) }
            switch root {
            case .all: succession.all = names
            case .holder: succession.holder = names
            }
        }
        return succession
    }

    /// Records in `keybag`, which is under the roots `new`, that these replaced the roots `old` of `former`, and those
    /// that `former` records. The newest `limit` stay. Where more are recorded on both sides, each side has half.
    static func record(
        _ former: Keybag, under old: KeyRing.Roots, in keybag: inout Keybag, under new: KeyRing.Roots,
        limit: Int = Keybag.FormerRoots.most
    ) throws(Failure) {
        let own = try Root.allCases.map { (root) throws(Failure) in
            try successionKeys(of: keybag, root, under: new)
        }
        let added = try Root.allCases.map { (root) throws(Failure) in
            try successionKeys(of: former, root, under: old)
        }
        defer { for key in (own + added).joined() { key.wipe() } }
        guard own.allSatisfy({ !$0.isEmpty }), added.allSatisfy({ !$0.isEmpty }) else { throw .noRoot }
        // The names of R decide for both lists, so that both keep the same length, whatever a copy lists.
        var names: Set<RootNames.Name> = [try name(of: own[0][0])]
        var chosen: [[SymmetricKey]] = []
        let half = added[0].indices.prefix(limit / 2).map { index in added.map { $0[index] } }
        let kept = own[0].indices.dropFirst().map { index in own.map { $0[index] } }
        let rest = added[0].indices.dropFirst(limit / 2).map { index in added.map { $0[index] } }
        for keys in half + kept + rest where names.insert(try name(of: keys[0])).inserted {
            chosen.append(keys)
        }
        for (position, root) in Root.allCases.enumerated() {
            keybag.formerRoots[root] = try seal(
                chosen.prefix(limit).map { $0[position] }, try wrap(keybag, root, under: new),
                associatedData("succession", [keybag.vault.bytes]))
        }
    }

    /// Takes the oldest former roots out of `keybag`, which is under `roots`, while it is too large and has more than one.
    static func makeRoom(in keybag: inout Keybag, under roots: KeyRing.Roots) throws(Failure) {
        while keybag.encoded() == nil, keybag.formerRoots.count > 1 {
            let limit = keybag.formerRoots.count - 1
            for root in Root.allCases {
                let keys = try successionKeys(of: keybag, root, under: roots)
                defer { for key in keys { key.wipe() } }
                keybag.formerRoots[root] = try seal(
                    Array(keys.dropFirst().prefix(limit)), try wrap(keybag, root, under: roots),
                    associatedData("succession", [keybag.vault.bytes]))
            }
        }
    }

    /// The two roots that have a succession.
    enum Root: CaseIterable {
        case all, holder

        func of(_ roots: KeyRing.Roots) -> SymmetricKey? {
            switch self {
            case .all: roots.all
            case .holder: roots.holder
            }
        }
    }

    /// Returns the keys that stand for a root of `keybag` and for those that it replaced, the newest first. Empty where
    /// the root is not held.
    private static func successionKeys(
        of keybag: Keybag, _ root: Root, under roots: KeyRing.Roots
    ) throws(Failure) -> [SymmetricKey] {
        guard let key = root.of(roots) else { return [] }
        var keys = [try derive(key, "tokenvault 1 succession", [keybag.vault.bytes])]
        let sealed = keybag.formerRoots[root]
        guard !sealed.isEmpty else { return keys }
        let bytes = try open(
            sealed, try wrap(keybag, root, under: roots), associatedData("succession", [keybag.vault.bytes]))
        for start in stride(from: 0, to: bytes.count, by: SymmetricKey.length) {
            keys.append(
                try wrapped { () throws(CryptoError) in try SymmetricKey(copying: bytes, from: start) })
        }
        return keys
    }

    private static func wrap(
        _ keybag: Keybag, _ root: Root, under roots: KeyRing.Roots
    ) throws(Failure) -> SymmetricKey {
        guard let key = root.of(roots) else { throw .noRoot }
        return try derive(key, "tokenvault 1 succession wrap", [keybag.vault.bytes])
    }

    private static func name(of key: SymmetricKey) throws(Failure) -> RootNames.Name {
        let label = Array("tokenvault 1 succession name".utf8)
        guard let bytes = Hash.keyed(label, key: key, length: RootNames.Name.length) else {
            throw .crypto(.unavailable)
        }
        var reader = ByteReader(bytes)
        guard let name = try? RootNames.Name(&reader) else { throw .corrupt }
        return name
    }
}

extension Keybag.FormerRoots {
    fileprivate subscript(root: KeybagKeys.Root) -> [UInt8] {
        get {
            switch root {
            case .all: all
            case .holder: holder
            }
        }
        set {
            switch root {
            case .all: all = newValue
            case .holder: holder = newValue
            }
        }
    }
}
