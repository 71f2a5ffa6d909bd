/// What asking the person needs.
protocol KeyringPrompting {
    var service: SecretService { get }
    var link: KeyringLink { get }
    var call: BusCall { get }
}

/// One attempt of one call at the keyring: everything it needs is found.
struct KeyringAccess: KeyringPrompting {
    let service: SecretService
    let link: KeyringLink
    let call: BusCall
    let collection: String
    let session: SecretSession

    var memory: KeyringMemory { service.memory }

    /// Sends `methods` at once and waits for the replies.
    func ask(_ methods: [BusMethod]) throws(TokenStorageError) -> [BusReply] {
        try link.connection.ask(methods, for: call)
    }

    /// An item that was found: the one that counts, and others of the same key that some program left.
    struct Found {
        var item: KeyringItem
        var duplicates: [String] = []

        /// Every path, the one that counts last.
        var paths: [String] { duplicates + [item.path] }
    }

    /// What the keyring has of a service: of one key, or of all.
    ///
    /// Of several items of one key the one of the highest generation counts, then the one whose path comes
    /// last: every process finds the same. Throws `locked`; never takes that for absent.
    func find(_ name: String, _ key: TokenKey?) throws(TokenStorageError) -> [TokenKey: Found] {
        try read(try paths(of: KeyringItem.query(service: name, key: key)), of: name, key)
    }

    /// The paths of what `query` finds. Throws `locked`; never takes that for absent.
    func paths(of query: TokenAttributes) throws(TokenStorageError) -> [String] {
        let replies = try ask([
            link.searchMethod(collection, query),
            link.propertyMethod(collection, "Locked", of: BusName.collection),
        ])
        try checkCollection(replies)
        guard try KeyringLink.property(replies[1]).bool == false else { throw .keyringIsLocked }
        return try KeyringLink.found(replies[0])
    }

    /// What the items at `paths` say, as far as they are items of that service and key.
    func read(
        _ paths: [String], of name: String, _ key: TokenKey?
    ) throws(TokenStorageError) -> [TokenKey: Found] {
        let moment = memory.moment
        var all: [TokenKey: Found] = [:]
        for item in try items(at: paths) where KeyringItem.isItem(item, of: name, key) {
            if item.isLocked { throw .keyringIsLocked }
            keep(item, in: &all)
        }
        for (key, found) in all {
            memory.remember(found.item, KeyringMemory.Name(name, key), since: moment)
            noteRead(found.item)
        }
        return all
    }

    /// The items of ours among those at `paths`.
    func items(at paths: [String]) throws(TokenStorageError) -> [KeyringItem] {
        var items: [KeyringItem] = []
        var rest = paths[...]
        while !rest.isEmpty {
            let some = rest.prefix(Self.mostAtOnce)
            rest = rest.dropFirst(some.count)
            let replies = try ask(some.map { link.propertiesMethod($0, of: BusName.item) })
            for (path, reply) in zip(some, replies) {
                if let item = try item(path, reply) { items.append(item) }
            }
        }
        return items
    }

    /// The item that a reply to ``KeyringLink/propertiesMethod(_:of:)`` tells; `nil` when it is gone or
    /// not one of ours.
    func item(_ path: String, _ reply: BusReply) throws(TokenStorageError) -> KeyringItem? {
        if case .error(let name, _) = reply, BusErrorName.isNoObject(name) { return nil }
        guard let properties = try KeyringLink.values(reply, "(a{sv})")[0].properties else { return nil }
        return KeyringItem(path: path, properties: properties)
    }

    private func keep(_ item: KeyringItem, in all: inout [TokenKey: Found]) {
        let key = item.metadata.key
        guard var found = all[key] else {
            all[key] = Found(item: item)
            return
        }
        let (old, new) = (found.item.metadata.generation, item.metadata.generation)
        if new > old || (new == old && Self.isLater(item.path, than: found.item.path)) {
            found.duplicates.append(found.item.path)
            found.item = item
        } else {
            found.duplicates.append(item.path)
        }
        all[key] = found
    }

    /// Services number their items: 101 is later than 99.
    private static func isLater(_ path: String, than other: String) -> Bool {
        let (length, otherLength) = (path.utf8.count, other.utf8.count)
        return length == otherLength ? path > other : length > otherLength
    }

    /// A collection that was deleted, or belongs to an earlier service, is looked for anew next time.
    func checkCollection(_ replies: [BusReply]) throws(TokenStorageError) {
        for case .error(let name, _) in replies where BusErrorName.isNoObject(name) {
            link.forgetCollection()
            throw KeyringAccess.collectionIsGone
        }
    }

    static let collectionIsGone = TokenStorageError.passing(
        "the keyring was deleted, or another one made the default, during the call", "try again")

    // How many calls are in flight at once: the bus keeps a few hundred for each connection.
    static let mostAtOnce = 100
}

extension SecretService {
    /// Runs `body` with the keyring at hand; anew when the session or the keyring went away meanwhile, and
    /// when the keyring was locked and the person unlocked it, who is asked if `mayAsk`. `body` must not have changed anything when
    /// it throws `locked` or one of these two.
    func withKeyring<Value>(
        _ call: BusCall, mayAsk: Bool = true,
        _ body: (KeyringAccess) throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        var wasUnlocked = false
        var wasLookedForAnew = false
        var wasReopened = false
        while true {
            try call.check()
            let access = try access(for: call, mayCreate: mayAsk)
            do throws(TokenStorageError) {
                return try body(access)
            } catch {
                // What was sent was refused: nothing is begun.
                let isRefused =
                    error == KeyringAccess.sessionIsGone || error == KeyringAccess.collectionIsGone
                    || error == .keyringIsLocked
                if isRefused { call.deliver { $0.isWriting = false } }
                if error == KeyringAccess.sessionIsGone, !wasReopened {
                    access.link.forget(access.session)
                    wasReopened = true
                } else if error == KeyringAccess.collectionIsGone, !wasLookedForAnew {
                    wasLookedForAnew = true
                } else if error == .keyringIsLocked, mayAsk, !wasUnlocked {
                    try access.unlock()
                    wasUnlocked = true
                } else if error == KeyringAccess.sessionIsGone {
                    throw .secretService(
                        .ioFailure,
                        underlying: "the Secret Service answers for another session than this one",
                        advice: "end it and start it anew")
                } else {
                    throw error
                }
            }
        }
    }

    private func access(
        for call: BusCall, mayCreate: Bool
    ) throws(TokenStorageError) -> KeyringAccess {
        let link = try link(for: call)
        let session = try link.session(for: call)
        let finder = CollectionFinder(service: self, link: link, call: call, mayCreate: mayCreate)
        let collection = try link.collection { () throws(TokenStorageError) in try finder.find() }
        return KeyringAccess(
            service: self, link: link, call: call, collection: collection, session: session)
    }
}

extension KeyringAccess {
    /// The service does not know the session: it is another process than the one that opened it.
    static let sessionIsGone = TokenStorageError.passing(BusErrorName.noSession, "try again")
}
