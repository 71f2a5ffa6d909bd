internal import TokenVaultCore
internal import TokenVaultCrypto

/// Reads of one key and of a service.
extension KeyringAccess {
    /// The secret of a key; `nil` when it is absent.
    ///
    /// Sends one request when the item is known and the service reports changes before it answers. Otherwise
    /// also requests the item's attributes, after the secret: the attributes tell which key the secret
    /// belongs to.
    func secret(_ service: String, _ key: TokenKey) throws(TokenStorageError) -> Secret? {
        let name = KeyringMemory.Name(service, key)
        var rounds = 0
        while true {
            try call.check()
            // Taken before the look at commits under way: an item that comes later may count more.
            let moment = memory.moment
            if let outcome = try outcomeUnderWay(service, key) { return outcome.item?.secret }
            guard let known = try known(service, key) else { return nil }
            let path = known.item.path
            var methods = [link.secretMethod(path, session)]
            if !known.isCurrent { methods.append(link.propertyMethod(path, "Attributes", of: BusName.item)) }
            let replies = try ask(methods)
            guard let bytes = try secretBytes(replies[0], path) else { continue }
            rounds += 1
            if rounds < Self.mostRounds, memory.hasUnknown(since: moment) { continue }
            if known.isCurrent {
                guard memory.isCurrent(known.item, name) else { continue }
                return try decode(bytes, known.item.encoding)
            }
            if case .error(let error, _) = replies[1], BusErrorName.isNoObject(error) {
                memory.forget(path: path)
                continue
            }
            guard let attributes = try KeyringLink.property(replies[1]).attributes,
                KeyringItem.areAttributes(attributes, of: service, key, isOthers: known.item.isOthers)
            else {
                memory.forget(path: path)
                continue
            }
            return try decode(bytes, known.item.isOthers ? .text : KeyringItem.encoding(in: attributes))
        }
    }

    /// An item with its secret, both of one generation; `nil` when it is absent.
    func item(_ service: String, _ key: TokenKey) throws(TokenStorageError) -> TokenItem? {
        while true {
            try call.check()
            if let outcome = try outcomeUnderWay(service, key) { return outcome.item }
            guard let known = try known(service, key) else { return nil }
            let path = known.item.path
            let properties = link.propertiesMethod(path, of: BusName.item)
            // The metadata is read before and after the secret. If both are the same, no program wrote in
            // between.
            let replies = try ask([properties, link.secretMethod(path, session), properties])
            guard let before = try item(path, replies[0]), let after = try item(path, replies[2]),
                after.isOthers == known.item.isOthers, KeyringItem.isItem(after, of: service, key),
                let bytes = try secretBytes(replies[1], path)
            else {
                memory.forget(path: path)
                continue
            }
            guard before.metadata == after.metadata else { continue }
            return TokenItem(metadata: after.metadata, secret: try decode(bytes, after.encoding))
        }
    }

    /// What is known of a key beside its secret; `nil` when it is absent.
    func metadata(_ service: String, _ key: TokenKey) throws(TokenStorageError) -> TokenMetadata? {
        let name = KeyringMemory.Name(service, key)
        while true {
            try call.check()
            if let outcome = try outcomeUnderWay(service, key) { return outcome.item?.metadata }
            // Taken before the item is recalled: a keyring that is unlocked later may have an item that
            // counts more.
            let moment = memory.moment
            guard let known = memory.recall(name) else {
                return try find(service, key)?.item.metadata
            }
            let reply = try ask([link.propertiesMethod(known.item.path, of: BusName.item)])[0]
            guard let item = try item(known.item.path, reply), KeyringItem.isItem(item, of: service, key)
            else {
                memory.forget(path: known.item.path)
                continue
            }
            if item.isLocked { throw locked(items: [item.path]) }
            memory.remember(item, name, since: moment)
            noteRead(item)
            return item.metadata
        }
    }

    /// Every item of a service that answers `query`, in the order of the keys.
    func list(_ service: String, _ query: TokenQuery) throws(TokenStorageError) -> TokenListing {
        memory.watchCommits(in: service)
        for _ in 0..<Self.mostRounds {
            try call.check()
            let commits = memory.commits(in: service)
            let listing = try listing(of: service, query)
            // The list was read in parts, and only some of them may show a commit in between.
            if commits == memory.commits(in: service) { return listing }
        }
        // Other processes commit all the time, or a program only claims so. During our own turn no process
        // commits.
        return try asWriter { () throws(TokenStorageError) in try listing(of: service, query) }
    }

    private static let mostRounds = 8

    /// What can be shown of a service, and how many items locked keyrings have of it.
    private func listing(
        of service: String, _ query: TokenQuery
    ) throws(TokenStorageError) -> TokenListing {
        let search = try search(service, nil)
        try requireReadable(search)
        var items = search.ours.mapValues(\.item.metadata)
        if let intent = try commitUnderWay(in: service) {
            for (key, outcome) in intent.outcomes where !intent.isOutdone(by: items[key]) {
                items[key] = outcome.item?.metadata
            }
        }
        let others = Set(search.others.keys).subtracting(items.keys)
        items.merge(search.others.mapValues(\.item.metadata)) { ours, _ in ours }
        let hidden = search.locked.count + (readsOthers ? search.lockedOthers.count : 0)
        var listing = TokenListing(
            items: items.values.filter { query.matches($0) }.sorted { $0.key < $1.key }, hidden: hidden,
            hiddenReasons: hidden > 0 ? [.locked: hidden] : [:],
            passedOver: readsOthers ? search.passedOver : 0)
        listing.keysOfOthers = Set(listing.items.map(\.key)).intersection(others)
        return listing
    }

    /// Throws `locked` while the chosen keyring is locked. Does not throw when prompts are not allowed, other keyrings
    /// have something to show, and locked items are counted as hidden.
    private func requireReadable(_ search: KeyringSearch) throws(TokenStorageError) {
        let isEmpty = search.ours.isEmpty && search.others.isEmpty
        if search.isHomeLocked {
            guard service.configuration.prompting == .never, !isEmpty, !search.locked.isEmpty else {
                return _ = try requireHome(search)
            }
        } else if isEmpty, search.locked.isEmpty {
            try requireHome(search)
        }
    }

    // MARK: - Parts

    /// What a commit under way leaves under a key, unless the key's own item is as new.
    private func outcomeUnderWay(
        _ service: String, _ key: TokenKey
    ) throws(TokenStorageError) -> CommitIntent.Outcome? {
        guard let intent = try commitUnderWay(in: service), let outcome = intent[key] else { return nil }
        return intent.isOutdone(
            by: try find(service, key).flatMap { $0.item.isOthers ? nil : $0.item.metadata }) ? nil : outcome
    }

    /// Where the item of a key is, as it is remembered or found; `nil` when it is absent.
    private func known(
        _ service: String, _ key: TokenKey
    ) throws(TokenStorageError) -> KeyringMemory.Known? {
        if let known = memory.recall(KeyringMemory.Name(service, key)) { return known }
        return try find(service, key).map { KeyringMemory.Known(item: $0.item, isCurrent: false) }
    }

    /// What the service gave for a secret; `nil` when the item at `path` is gone.
    func secretBytes(_ reply: BusReply, _ path: String) throws(TokenStorageError) -> SecretBytes? {
        if case .error(let name, _) = reply {
            if BusErrorName.isNoObject(name) {
                memory.forget(path: path)
                return nil
            }
            if name == BusErrorName.noSession { throw Self.sessionIsGone }
            if name == BusErrorName.isLocked { throw locked(items: [path]) }
        }
        let value = try KeyringLink.values(reply, "((oayays))")[0]
        guard let bytes = session.decrypt(value) else {
            // The secret is encrypted for another session: the service was replaced in between.
            throw Self.sessionIsGone
        }
        return bytes
    }

    func decode(
        _ bytes: SecretBytes, _ encoding: WireEncoding?
    ) throws(TokenStorageError) -> Secret {
        guard let encoding else {
            throw .secretService(.unsupportedFormat, .newerFormat(.keyringItem))
        }
        guard let secret = encoding.decode(bytes) else {
            throw .secretService(.corrupt, .damaged(.keyringEncoding))
        }
        return secret
    }
}
