internal import TokenVaultCore

/// What only the holder of the writers' name does.
struct KeyringWriter {
    let access: KeyringAccess
    let generation: Generation

    private var memory: KeyringMemory { access.memory }
    private var link: KeyringLink { access.link }

    /// Writes an item: one call, and so one rewrite of the keyring, unless its attributes change. Then the
    /// new item is made before the old one goes: a crash in between leaves two, and the newer one counts. The new
    /// one is in the keyring of `found`, else in `collection`.
    ///
    /// Throws `outcomeUnknown` when the call was sent and its end is not known. Returns what was stored.
    @discardableResult
    func put(
        _ metadata: TokenMetadata, _ secret: Secret, instead found: KeyringAccess.Found?,
        in collection: String
    ) throws(TokenStorageError) -> KeyringItem {
        let encoding = WireEncoding(for: secret)
        let attributes = KeyringItem.attributes(of: metadata, encoding: encoding)
        let isSame = found?.item.attributes == attributes
        let start = WallClock.seconds
        let path = try create(
            attributes, in: found?.collection ?? collection, label: ItemLabel.write(metadata, at: start),
            secret: try access.session.encrypt(encoding.encode(secret), contentType: encoding.contentType),
            replace: isSame
        ) { KeyringItem(path: $0, metadata: metadata, encoding: encoding) }
        if WallClock.seconds > start + 1 { label(path, metadata) }
        for old in found?.paths ?? [] where old != path { remove(old) }
        return KeyringItem(path: path, metadata: metadata, encoding: encoding)
    }

    /// Deletes an item, the one that counts last: a crash in between leaves it as it was.
    func delete(_ found: KeyringAccess.Found) throws(TokenStorageError) {
        for path in found.duplicates { try delete(path) }
        try delete(found.item.path)
    }

    /// The service took so long that its own date of the change would look like another program's.
    private func label(_ path: String, _ metadata: TokenMetadata) {
        let label = link.make.text(ItemLabel.write(metadata, at: WallClock.seconds))
        _ = try? write(
            BusMethod(
                path: path, interface: BusName.properties, name: "Set",
                body: link.make.tuple([
                    link.make.text(BusName.item), link.make.text("Label"), link.make.variant(label),
                ])))
    }

    /// Makes an item, or replaces the one of the same attributes; returns its path. `item` is what is
    /// remembered of it, if it is an item of a key.
    func create(
        _ attributes: TokenAttributes, in collection: String, label: String, secret: Variant, replace: Bool,
        item: (String) -> KeyringItem? = { _ in nil }
    ) throws(TokenStorageError) -> String {
        let method = link.createMethod(
            in: collection, label: label, attributes: attributes, secret: secret, replace: replace)
        var path: String?
        memory.beginWrite()
        defer { memory.endWrite(path: path, path.flatMap { item($0) }) }
        let reply = try write(method)
        try access.checkCollection([reply])
        if case .error(BusErrorName.isLocked, _) = reply { throw access.locked([collection]) }
        let values = try KeyringLink.values(reply, "(oo)")
        if let made = values[0].text, made != "/" {
            path = made
            return made
        }
        // A service may prompt the user first.
        guard let prompt = values[1].text, prompt != "/" else { throw KeyringLink.unexpected }
        guard let result = try ask(prompt) else { throw .promptWasDismissed }
        guard result.isOf("o"), let made = result.text, made != "/" else { throw KeyringLink.unexpected }
        path = made
        return made
    }

    /// Deletes the item at `path`, if it is there.
    func delete(_ path: String) throws(TokenStorageError) {
        let reply = try write(link.deleteMethod(path))
        if case .error(let name, _) = reply, BusErrorName.isNoObject(name) {
            memory.forget(path: path)
            return
        }
        if case .error(BusErrorName.isLocked, _) = reply {
            throw access.locked(items: [path])
        }
        let prompt = try KeyringLink.values(reply, "(o)")[0].text ?? "/"
        // A service may prompt the user first, and deletes nothing before the user agrees.
        if prompt != "/", try ask(prompt) == nil { throw .promptWasDismissed }
        memory.forget(path: path)
    }

    /// Asks the person to agree to a write. Nothing is written before they do: until then it can be cancelled.
    private func ask(_ prompt: String) throws(TokenStorageError) -> Variant? {
        access.call.deliver { $0.isWriting = false }
        do {
            let result = try access.run(prompt: prompt)
            access.call.deliver { $0.isWriting = true }
            return result
        } catch {
            // The user may have agreed before the service ended.
            throw error.code == .unavailable ? unknown(error.reason) : error
        }
    }

    /// Deletes what no longer counts; what is left of it is found and removed by a later write.
    private func remove(_ path: String) { try? delete(path) }

    /// Sends a write and waits for its end; a cancellation comes too late for it.
    private func write(_ method: BusMethod) throws(TokenStorageError) -> BusReply {
        try access.call.beginWriting()
        let reply: BusReply
        do {
            reply = try access.ask([method])[0]
        } catch {
            throw unknown(error.reason)
        }
        guard case .error(let name, let text) = reply else { return reply }
        switch name {
        case BusErrorName.noSession: throw KeyringAccess.sessionIsGone
        case BusErrorName.noReply, BusErrorName.disconnected: throw unknown(.busError("\(name): \(text)"))
        default: return reply
        }
    }

    private func unknown(_ reason: TokenStorageError.Reason?) -> TokenStorageError {
        .secretService(.outcomeUnknown, .unknownOutcome(reason), generation: generation)
    }
}
