internal import TokenVaultCore

/// Looks for items in every keyring, and says what a reader and a writer may take for absent.
extension KeyringAccess {
    /// Returns the items of a service in all keyrings: of one key, or of all keys. Does not read the items of
    /// locked keyrings. Throws `unavailable` when other programs replace items faster than they can be read.
    func search(_ name: String, _ key: TokenKey?) throws(TokenStorageError) -> KeyringSearch {
        let searches = KeyringItem.searches(service: name, key: key, withOthers: readsOthers)
        var gone: Set<String> = []
        for _ in 0..<Self.mostSearches {
            try call.check()
            let moment = memory.moment
            let (paths, isHomeLocked) = try paths(ofEach: searches.map(\.query), asksHome: true)
            let found = try paths.map { (paths) throws(TokenStorageError) in
                try properties(at: paths.unlocked)
            }
            let missing = Set(paths.flatMap(\.unlocked)).subtracting(found.joined().map(\.path))
            // The missing items were replaced, and another search finds their replacements. A service may
            // also list items that no longer exist.
            if missing.isSubset(of: gone) {
                var search = KeyringSearch(home: collection, isHomeLocked: isHomeLocked)
                for (index, names) in searches.enumerated() {
                    add(found[index], to: &search, name, key, names)
                    for (path, owner) in try owners(ofLocked: paths[index].locked) {
                        add(locked: path, owner, to: &search, names)
                    }
                }
                remember(search, name, since: moment)
                return search
            }
            gone.formUnion(missing)
        }
        throw .secretService(.unavailable, .changedMeanwhile(.keyringItems))
    }

    static let mostSearches = 8

    /// Adds to `search` the items that `names` found in unlocked collections.
    private func add(
        _ found: [(path: String, properties: [String: Variant])], to search: inout KeyringSearch,
        _ name: String, _ key: TokenKey?, _ names: KeyringItem.Search
    ) {
        for (path, properties) in found {
            let item = KeyringItem(path: path, properties: properties, orOthers: readsOthers)
            if properties["Locked"]?.bool == true {
                // The item was locked after the search, or comes from a service that was started since.
                let owner = KeyringItem.owner(ofLocked: properties["Attributes"]?.attributes)
                add(locked: path, owner, to: &search, names)
            } else if let item {
                if KeyringItem.isItem(item, of: name, key) { search.add(item) }
            } else {
                let isOurs = properties["Attributes"]?.attributes.map { KeyringItem.isOurs($0) } ?? false
                if isOurs ? names.findsOurs : names.findsOthers { search.nameless += 1 }
            }
        }
    }

    /// Adds to `search` an item that `names` found in a locked collection. An item of another writer has other names.
    private func add(
        locked path: String, _ owner: KeyringItem.Owner, to search: inout KeyringSearch,
        _ names: KeyringItem.Search
    ) {
        switch owner {
        case .ours: if names.findsOurs { search.add(locked: path, owner) }
        case .others, .neither: if names.findsOthers { search.add(locked: path, owner) }
        case .unknown: search.add(locked: path, names.findsOurs ? .ours : .others)
        }
    }

    /// Keeps in memory the items of ours that a search found alone.
    private func remember(_ search: KeyringSearch, _ name: String, since moment: UInt64) {
        for (key, found) in search.ours {
            // The key is searched each time: a locked keyring may have an item that counts more, and a store
            // has to replace every duplicate.
            if search.locked.isEmpty, found.duplicates.isEmpty {
                memory.remember(found.item, KeyringMemory.Name(name, key), since: moment)
            }
            noteRead(found.item)
        }
    }

    /// The item of a key that counts for a reader; `nil` when it is absent. Throws `locked` when a locked keyring may
    /// have it, and `unavailable` when it is absent and new items would have no keyring to go to.
    func find(_ name: String, _ key: TokenKey) throws(TokenStorageError) -> Found? {
        let search = try search(name, key)
        if let found = search.ours[key], !search.isHiddenAtHome { return found }
        try requireUnlocked(search.locked)
        if search.isHomeLocked { try requireHome(search) }
        guard readsOthers else { return try requireHome(search) }
        if let found = search.others[key] { return found }
        try requireUnlocked(search.lockedOthers)
        return try requireHome(search)
    }

    /// The item of a key that a write replaces or deletes, and its duplicates; `nil` when it is absent. Throws as
    /// ``find(_:_:)``, and `locked` when any locked keyring has an item of the key: it would be read later.
    func findToChange(_ name: String, _ key: TokenKey) throws(TokenStorageError) -> Found? {
        let search = try search(name, key)
        try requireUnlocked(search.locked)
        if let found = search.ours[key] { return found }
        return try requireHome(search)
    }

    /// Every item of a service that a write deletes or replaces. Throws as ``findToChange(_:_:)``.
    func findToChange(_ name: String) throws(TokenStorageError) -> [TokenKey: Found] {
        let search = try search(name, nil)
        try requireUnlocked(search.locked)
        if search.isHomeLocked || search.ours.isEmpty { try requireHome(search) }
        return search.ours
    }

    /// Whether items of other programs are looked for too.
    var readsOthers: Bool { service.configuration.readsOtherPrograms }

    /// What is not found is absent, if the collection for new items is there and unlocked. Throws `unavailable`
    /// and `locked` otherwise.
    @discardableResult
    func requireHome(_ search: KeyringSearch) throws(TokenStorageError) -> Found? {
        let home = try home
        if search.isHomeLocked { throw locked([home]) }
        return nil
    }

    /// The collection for new items. Throws `unavailable` when there is none.
    var home: String {
        get throws(TokenStorageError) {
            guard let collection else { throw .noCollection(service.configuration.collection.label) }
            return collection
        }
    }

    /// Throws `locked` when there are items at `paths`, which are in locked collections.
    func requireUnlocked(_ paths: [String]) throws(TokenStorageError) {
        guard paths.isEmpty else { throw locked(items: paths) }
    }

    /// The error of a call that cannot go on before `collections` are unlocked.
    func locked(_ collections: [String]) -> TokenStorageError {
        call.deliver { state in
            state.locked = Set(collections).sorted()
            state.lockedItems = []
        }
        return .keyringIsLocked
    }

    /// Returns the error of a call that cannot go on before the items at `paths` are unlocked. Notes their collections
    /// to unlock, and the items themselves where a service locks each item.
    func locked(items paths: [String]) -> TokenStorageError {
        call.deliver { state in
            state.locked = Set(paths.map { KeyringItem.collection(of: $0) }).sorted()
            state.lockedItems = paths.sorted()
        }
        return .keyringIsLocked
    }

    /// The paths of what a query finds, in unlocked and in locked collections.
    struct Paths {
        var unlocked: [String]
        var locked: [String]
        /// Whether the collection for new items is locked; false when that was not asked.
        var isHomeLocked = false
    }

    /// The paths of what any of `queries` finds in all collections. `asksHome` also asks whether the collection for
    /// new items is locked.
    func paths(of queries: TokenAttributes..., asksHome: Bool = true) throws(TokenStorageError) -> Paths {
        let (each, isHomeLocked) = try paths(ofEach: queries, asksHome: asksHome)
        return Paths(
            unlocked: Array(Set(each.flatMap(\.unlocked))), locked: Array(Set(each.flatMap(\.locked))),
            isHomeLocked: isHomeLocked)
    }

    /// The paths of what each of `queries` finds in all collections, and whether the collection for new items is locked;
    /// false when `asksHome` is.
    private func paths(
        ofEach queries: [TokenAttributes], asksHome: Bool
    ) throws(TokenStorageError) -> (found: [(unlocked: [String], locked: [String])], isHomeLocked: Bool) {
        var methods = queries.map { link.searchMethod($0) }
        if asksHome, let collection {
            methods.append(link.propertyMethod(collection, "Locked", of: BusName.collection))
        }
        let replies = try ask(methods)
        var isHomeLocked = false
        if replies.count > queries.count {
            try checkCollection([replies[queries.count]])
            isHomeLocked = try KeyringLink.property(replies[queries.count]).bool != false
        }
        var found: [(unlocked: [String], locked: [String])] = []
        for reply in replies.prefix(queries.count) {
            let paths = try KeyringLink.found(reply)
            found.append((Array(Set(paths.unlocked)), Array(Set(paths.locked))))
        }
        return (found, isHomeLocked)
    }

    /// The items of ours among those at `paths`.
    func items(at paths: [String]) throws(TokenStorageError) -> [KeyringItem] {
        try properties(at: paths).compactMap { KeyringItem(path: $0.path, properties: $0.properties) }
    }

    /// What the service tells of the items at `paths` that are still there.
    private func properties(
        at paths: [String]
    ) throws(TokenStorageError) -> [(path: String, properties: [String: Variant])] {
        var all: [(path: String, properties: [String: Variant])] = []
        for (path, reply) in try ask(paths, { link.propertiesMethod($0, of: BusName.item) }) {
            if case .error(let name, _) = reply, BusErrorName.isNoObject(name) { continue }
            guard let properties = try KeyringLink.values(reply, "(a{sv})")[0].properties else { continue }
            all.append((path, properties))
        }
        return all
    }

    /// Whose the items at `paths`, in locked collections, are.
    func owners(
        ofLocked paths: [String]
    ) throws(TokenStorageError) -> [(path: String, owner: KeyringItem.Owner)] {
        try attributes(at: paths).map { ($0.path, KeyringItem.owner(ofLocked: $0.attributes)) }
    }

    /// The attributes of the items at `paths` that are still there; `nil` where the service gives none.
    func attributes(
        at paths: [String]
    ) throws(TokenStorageError) -> [(path: String, attributes: TokenAttributes?)] {
        var all: [(path: String, attributes: TokenAttributes?)] = []
        for (path, reply) in try ask(paths, { link.propertyMethod($0, "Attributes", of: BusName.item) }) {
            if case .error(let name, _) = reply, BusErrorName.isNoObject(name) { continue }
            if case .error(BusErrorName.isLocked, _) = reply {
                all.append((path, nil))
            } else {
                all.append((path, try KeyringLink.property(reply).attributes))
            }
        }
        return all
    }

    /// Asks about each of `paths`, no more at once than the bus takes.
    private func ask(
        _ paths: [String], _ method: (String) -> BusMethod
    ) throws(TokenStorageError) -> [(String, BusReply)] {
        var all: [(String, BusReply)] = []
        var rest = paths[...]
        while !rest.isEmpty {
            let some = rest.prefix(Self.mostAtOnce)
            rest = rest.dropFirst(some.count)
            all += zip(some, try ask(some.map(method)))
        }
        return all
    }

    /// The item that a reply to ``KeyringLink/propertiesMethod(_:of:)`` tells; `nil` when it is gone or
    /// not read here.
    func item(_ path: String, _ reply: BusReply) throws(TokenStorageError) -> KeyringItem? {
        if case .error(let name, _) = reply, BusErrorName.isNoObject(name) { return nil }
        guard let properties = try KeyringLink.values(reply, "(a{sv})")[0].properties else { return nil }
        return KeyringItem(path: path, properties: properties, orOthers: readsOthers)
    }
}
