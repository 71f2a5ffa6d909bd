internal import TokenVaultCore
internal import TokenVaultCrypto

/// Commits that others have under way, or left when they died.
extension KeyringAccess {
    /// Returns the commit under way in `service`; `nil` when there is none. The commit decides about its
    /// keys, except where a key's own item is as new (``CommitIntent/isOutdone(by:)``).
    ///
    /// Queries the service only at first, after a change of a keyring or a new unknown item, and while a
    /// known commit is under way.
    func commitUnderWay(in service: String) throws(TokenStorageError) -> CommitIntent? {
        if let own = memory.ownCommit(in: service) { return own }
        let intents = try commitsUnderWay(in: service)
        return intents.map(\.intent).filter { Bytes.areEqual($0.service, service) }
            .max { $0.generation < $1.generation }
    }

    /// Finishes the commits of `service` whose writers died. The owner of the writers' name calls this method before
    /// anything else.
    func finishCommits(before service: String) throws(TokenStorageError) {
        let intents = try commitsUnderWay(in: service)
            .filter { Bytes.areEqual($0.intent.service, service) }
        for (path, intent) in intents.sorted(by: { $0.intent.generation < $1.intent.generation }) {
            do throws(TokenStorageError) {
                try finish(intent, at: path)
            } catch {
                guard error.code == .outcomeUnknown else { throw error }
                // The unknown outcome is that of the earlier commit; the call's own commit has not begun.
                throw .secretService(.unavailable, .earlierCommitUnfinished(error.reason))
            }
        }
    }

    private func finish(_ intent: CommitIntent, at path: String) throws(TokenStorageError) {
        let writer = KeyringWriter(access: self, generation: intent.generation)
        let all = try findToChange(intent.service)
        for (key, outcome) in intent.outcomes {
            try call.check()
            let found = all[key]
            if intent.isOutdone(by: found?.item.metadata) { continue }
            switch outcome {
            case .stored(let item):
                let collection = KeyringItem.collection(of: path)
                try writer.put(item.metadata, item.secret, instead: found, in: collection)
            case .deleted: if let found { try writer.delete(found) }
            }
        }
        try writer.delete(path)
        service.tell(intent, on: link)
    }

    /// Every commit under way, and where it is. One that cannot be read is passed over unless it is one of
    /// `service`: `unsupportedFormat` when a newer program began it, else `corrupt`.
    func commitsUnderWay(
        in service: String?, round: Int = 1
    ) throws(TokenStorageError) -> [(path: String, intent: CommitIntent)] {
        var unseen = memory.unseen
        if unseen.isEmpty { return [] }
        // A keyring that was locked may be unlocked by now.
        if unseen.mustSearch || unseen.hasLockedIntents { try searchCommits() }
        if unseen.mustSearchItems {
            try searchItems()
            unseen = memory.unseen
        }
        if !unseen.unknown.isEmpty { try look(at: unseen.unknown) }
        unseen = memory.unseen
        var intents: [(path: String, intent: CommitIntent)] = []
        var wereLocked: Set<String> = []
        for path in unseen.intents.sorted() {
            let replies = try ask([
                link.secretMethod(path, session), link.propertyMethod(path, "Attributes", of: BusName.item),
            ])
            if case .error(BusErrorName.isLocked, _) = replies[0] {
                memory.noteLocked(intent: path)
                wereLocked.insert(path)
                continue
            }
            // The commit is gone: its writer finished it, and values that were read before may be a mixture.
            guard let bytes = try secretBytes(replies[0], path) else {
                memory.noteFinishedCommit()
                continue
            }
            do throws(FormatError) {
                guard let plain = Base64.decode(bytes) else { throw .outOfBounds }
                intents.append((path, try CommitIntent(decoding: plain)))
            } catch {
                if case .error = replies[1] { continue }
                let owner = CommitIntent.service(in: try KeyringLink.property(replies[1]).attributes)
                guard let owner, Bytes.areEqual(owner, service) else { continue }
                throw error == .newerVersion ? Self.newerCommit : Self.damagedCommit
            }
        }
        guard let service, memory.unseen.hasLockedIntents else { return intents }
        let ofService = try paths(of: CommitIntent.query(service: service), asksHome: false)
        // Only the commit tells what the items of the service are.
        try requireUnlocked(ofService.locked)
        let unknown = ofService.unlocked.filter { !unseen.intents.contains($0) || wereLocked.contains($0) }
        // Any program can make an item with such an attribute.
        guard
            try attributes(at: unknown).contains(where: { $0.attributes.map(CommitIntent.isCommit) ?? false })
        else { return intents }
        // The keyring of a commit was unlocked meanwhile.
        guard round < Self.mostSearches else {
            throw .secretService(.unavailable, .changedMeanwhile(.keyringCommits))
        }
        return try commitsUnderWay(in: service, round: round + 1)
    }

    private static let newerCommit = TokenStorageError.secretService(
        .unsupportedFormat, .newerFormat(.keyringCommit))
    private static let damagedCommit = TokenStorageError.secretService(
        .corrupt, .unreadableCommit(schema: CommitIntent.schema))

    /// Where commits under way are in locked collections, of whichever service.
    func lockedCommits() throws(TokenStorageError) -> Set<String> {
        guard memory.unseen.hasLockedIntents else { return [] }
        return Set(try paths(of: CommitIntent.query, CommitIntent.queryOfLocked, asksHome: false).locked)
    }

    private func searchCommits() throws(TokenStorageError) {
        let moment = memory.moment
        let paths = try paths(of: CommitIntent.query, CommitIntent.queryOfLocked, asksHome: false)
        memory.hasSearched(paths.unlocked, locked: paths.locked, since: moment)
    }

    /// Another program made many items: which of them are ours is one call.
    private func searchItems() throws(TokenStorageError) {
        let moment = memory.moment
        let paths = try paths(of: KeyringItem.everyItem, asksHome: false)
        memory.hasSearched(items: paths.unlocked + paths.locked, since: moment)
    }

    /// Finds out what the items at `paths` are.
    private func look(at paths: [String]) throws(TokenStorageError) {
        let moment = memory.moment
        let replies = try ask(paths.map { link.propertyMethod($0, "Attributes", of: BusName.item) })
        for (path, reply) in zip(paths, replies) {
            guard case .values = reply, let attributes = try KeyringLink.property(reply).attributes else {
                memory.forget(path: path)
                continue
            }
            memory.hasSeen(
                path, schema: attributes["xdg:schema"], KeyringItem.name(in: attributes), since: moment)
        }
    }
}
