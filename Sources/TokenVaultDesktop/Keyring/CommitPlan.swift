internal import TokenVaultCore
internal import TokenVaultCrypto

/// What a commit will do, from what is there.
struct CommitPlan {
    private enum Effect {
        /// Stores what `change` makes of `base`, in place of `found`, else in `collection`.
        case put(
            TokenChange, base: TokenMetadata?, Secret, instead: KeyringAccess.Found?, in: String)
        case delete(KeyringAccess.Found)
    }

    private let service: String
    private var effects: [Effect] = []
    private var existed: [Bool] = []
    private var newest: UInt64 = 0

    // The intent of a commit is one item, and Base64 adds a third to its length.
    private static let largestCommit = 32 << 20

    init(service: String) { self.service = service }

    /// Plans one change, after looking at what is there.
    mutating func add(_ change: TokenChange, _ access: KeyringAccess) throws(TokenStorageError) {
        let found = try current(change, access)
        var isTargetTaken = false
        if case .rename(let target) = change.action {
            isTargetTaken = try access.findToChange(service, target) != nil
        }
        let base = found?.item.metadata
        try CommitRules.check(
            change, current: base?.generation, isTargetTaken: isTargetTaken, operation: "",
            backend: TokenStorageError.secretServiceBackend)
        existed.append(found != nil)
        newest = max(newest, base?.generation.rawValue ?? 0)
        switch (change.action, found) {
        case (.store(let secret), _):
            let collection = if let found { found.collection } else { try access.home }
            effects.append(.put(change, base: base, secret, instead: found, in: collection))
        case (.delete, let found?): effects.append(.delete(found))
        case (.update, let found?):
            let secret = try access.secret(of: found)
            effects.append(.put(change, base: base, secret, instead: found, in: found.collection))
        case (.rename, let found?):
            let secret = try access.secret(of: found)
            effects.append(.put(change, base: base, secret, instead: nil, in: found.collection))
            effects.append(.delete(found))
        default: break
        }
    }

    /// Returns the item under the key of `change`; `nil` when there is none. A plain store needs no query for
    /// an item that no program has changed since the last read.
    private func current(
        _ change: TokenChange, _ access: KeyringAccess
    ) throws(TokenStorageError) -> KeyringAccess.Found? {
        if case .store = change.action, change.expectation == .any,
            let known = access.memory.recall(KeyringMemory.Name(service, change.key)), known.isCurrent
        {
            return KeyringAccess.Found(item: known.item)
        }
        let found = try access.findToChange(service, change.key)
        if found == nil, access.readsOthers { try requireNoOthers(change, access) }
        return found
    }

    /// Throws `notPermitted` for a change of an item of another program.
    private func requireNoOthers(
        _ change: TokenChange, _ access: KeyringAccess
    ) throws(TokenStorageError) {
        if case .store = change.action { return }
        guard try access.search(service, change.key).others[change.key] == nil else {
            throw .itemOfAnotherProgram
        }
    }

    /// Plans the deletion of an item.
    mutating func delete(_ found: KeyringAccess.Found) {
        existed.append(true)
        newest = max(newest, found.item.metadata.generation.rawValue)
        effects.append(.delete(found))
    }

    /// Does it: a single change directly, several by way of an intent.
    func perform(_ access: KeyringAccess) throws(TokenStorageError) -> TokenCommit {
        guard !effects.isEmpty else { return TokenCommit(generation: nil, existed: existed) }
        let now = WallClock.microseconds
        let generation = access.memory.nextGeneration(now: now, above: newest)
        let writer = KeyringWriter(access: access, generation: generation)
        let intent = intent(generation)
        if effects.count == 1 {
            try make(intent, writer)
        } else {
            try makeAll(intent, access, writer)
        }
        access.service.tell(intent, on: access.link)
        return TokenCommit(generation: generation, existed: existed)
    }

    private func intent(_ generation: Generation) -> CommitIntent {
        var intent = CommitIntent(service: service, generation: generation)
        for effect in effects {
            switch effect {
            case .put(let change, let base, let secret, _, _):
                let metadata = CommitRules.metadata(
                    after: change, current: base, service: service, defaultPolicy: .whenUnlocked,
                    now: Microseconds.date(generation.rawValue), generation: generation)
                intent.outcomes.append(
                    (metadata.key, .stored(TokenItem(metadata: metadata, secret: secret))))
            case .delete(let found): intent.outcomes.append((found.item.metadata.key, .deleted))
            }
        }
        return intent
    }

    private func makeAll(
        _ intent: CommitIntent, _ access: KeyringAccess, _ writer: KeyringWriter
    ) throws(TokenStorageError) {
        guard intent.outcomes.count <= CommitIntent.mostChanges else {
            throw .secretService(.tooLarge, .tooManyChanges(most: CommitIntent.mostChanges))
        }
        let bytes = intent.encode()
        guard bytes.count <= Self.largestCommit else {
            throw .secretService(.tooLarge, .limit(.commitLength))
        }
        let secret = try access.session.encrypt(
            Base64.encode(bytes), contentType: WireEncoding.base64.contentType)
        let path = try writer.create(
            intent.attributes, in: try collection(access), label: intent.label, secret: secret, replace: false
        )
        // From here on the commit has happened: readers answer from the intent, and the next writer finishes
        // it.
        access.memory.begin(intent)
        var isFinished = false
        defer { access.memory.end(intent, isFinished: isFinished) }
        do {
            try make(intent, writer)
            try writer.delete(path)
            isFinished = true
        } catch {
            throw .secretService(
                .outcomeUnknown, .commitUnfinished(error.reason), generation: intent.generation)
        }
    }

    /// Where the commit is written down: where its first item goes, so that another process that finishes it
    /// puts new ones there.
    private func collection(_ access: KeyringAccess) throws(TokenStorageError) -> String {
        for case .put(_, _, _, nil, let collection) in effects { return collection }
        for case .put(_, _, _, _, let collection) in effects { return collection }
        for case .delete(let found) in effects { return found.collection }
        return try access.home
    }

    private func make(_ intent: CommitIntent, _ writer: KeyringWriter) throws(TokenStorageError) {
        for (effect, (_, outcome)) in zip(effects, intent.outcomes) {
            switch (effect, outcome) {
            case (.put(_, _, _, let found, let collection), .stored(let item)):
                try writer.put(item.metadata, item.secret, instead: found, in: collection)
            case (.delete(let found), _): try writer.delete(found)
            default: break
            }
        }
    }
}

extension KeyringAccess {
    /// The secret of an item that was found. Throws `ioFailure` when another program deleted it meanwhile.
    fileprivate func secret(of found: Found) throws(TokenStorageError) -> Secret {
        let path = found.item.path
        let reply = try ask([link.secretMethod(path, session)])[0]
        guard let bytes = try secretBytes(reply, path) else {
            throw .secretService(.ioFailure, .changedMeanwhile(.keyringItem))
        }
        return try decode(bytes, found.item.encoding)
    }
}
