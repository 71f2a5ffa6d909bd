internal import TokenVaultPlatform

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// Commits: looked at, decided and written while nobody else writes.
extension SecretService {
    /// Makes all of `changes` or none.
    func commit(
        _ changes: [TokenChange], to name: String, for call: BusCall
    ) throws(TokenStorageError) -> TokenCommit {
        try writers.alone(call) { () throws(TokenStorageError) in
            try withKeyring(call) { (access) throws(TokenStorageError) in
                try access.asWriter { () throws(TokenStorageError) in
                    var plan = CommitPlan(service: name)
                    for change in changes { try plan.add(change, access) }
                    return try plan.perform(access)
                }
            }
        }
    }

    /// Deletes every item of a service; returns how many there were.
    func deleteAll(of name: String, for call: BusCall) throws(TokenStorageError) -> Int {
        try writers.alone(call) { () throws(TokenStorageError) in
            try withKeyring(call) { (access) throws(TokenStorageError) in
                try access.asWriter { () throws(TokenStorageError) in
                    var plan = CommitPlan(service: name)
                    for found in try access.find(name, nil).values.sorted(by: {
                        $0.item.metadata.key < $1.item.metadata.key
                    }) {
                        plan.delete(found)
                    }
                    return try plan.perform(access).existed.count
                }
            }
        }
    }
}

extension KeyringAccess {
    /// Runs `body` while this process owns the writers' name on the bus.
    ///
    /// The bus gives the name to one connection at a time, in the order they asked, and takes it back when
    /// a process ends. What `body` reads, no other TokenVault changes before `body` is done.
    func asWriter<Value>(
        _ body: () throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        let name = link.make.text(BusName.writer)
        call.deliver { $0.isWriter = false }
        let serial = try link.connection.send(
            .bus("RequestName", link.make.tuple([name, link.make.number(0)])), for: call,
            isNameRequest: true)
        defer {
            link.connection.inbox.forgetWriter()
            link.connection.tell(.bus("ReleaseName", link.make.tuple([name])))
        }
        let reply = try link.connection.replies(to: [serial], for: call)[0]
        if case .error(BusErrorName.accessDenied, let text) = reply {
            throw .secretService(
                .notPermitted, underlying: text,
                advice: "a sandbox needs --own-name=\(BusName.writer) to write to the keyring")
        }
        _ = try KeyringLink.values(reply, "(u)")
        try call.wait(isLost: { link.isLost }) { $0.isWriter ? () : nil }
        return try body()
    }
}

/// What a commit will do, from what is there.
struct CommitPlan {
    private enum Effect {
        case put(TokenChange, KeyringAccess.Found?, Secret?)
        case delete(KeyringAccess.Found)
    }

    private let service: String
    private var effects: [Effect] = []
    private var existed: [Bool] = []
    private var newest: UInt64 = 0

    init(service: String) { self.service = service }

    /// Plans one change, after looking at what is there.
    mutating func add(_ change: TokenChange, _ access: KeyringAccess) throws(TokenStorageError) {
        let found = try access.find(service, change.key)[change.key]
        var isTargetTaken = false
        if case .rename(let target) = change.action {
            isTargetTaken = try access.find(service, target)[target] != nil
        }
        let current = found?.item.metadata.generation
        try CommitRules.check(
            change, current: current, isTargetTaken: isTargetTaken, operation: "",
            backend: TokenStorageError.secretServiceBackend)
        existed.append(found != nil)
        newest = max(newest, current?.rawValue ?? 0)
        switch change.action {
        case .delete: if let found { effects.append(.delete(found)) }
        case .store(let secret): effects.append(.put(change, found, secret))
        case .update: effects.append(.put(change, found, try secret(of: found, access)))
        case .rename:
            effects.append(.put(change, nil, try secret(of: found, access)))
            if let found { effects.append(.delete(found)) }
        }
    }

    /// Plans the deletion of an item.
    mutating func delete(_ found: KeyringAccess.Found) {
        existed.append(true)
        newest = max(newest, found.item.metadata.generation.rawValue)
        effects.append(.delete(found))
    }

    /// Does it.
    func perform(_ access: KeyringAccess) throws(TokenStorageError) -> TokenCommit {
        guard !effects.isEmpty else { return TokenCommit(generation: nil, existed: existed) }
        let now = UInt64(max(0, Microseconds.of(Date())))
        let generation = access.memory.nextGeneration(now: now, above: newest)
        let writer = KeyringWriter(access: access, generation: generation)
        for effect in effects {
            switch effect {
            case .put(let change, let found, let secret):
                let metadata = CommitRules.metadata(
                    after: change, current: found?.item.metadata, service: service,
                    defaultPolicy: .whenUnlocked, now: Microseconds.date(generation.rawValue),
                    generation: generation)
                try writer.put(metadata, secret ?? Secret([]), instead: found)
            case .delete(let found): try writer.delete(found)
            }
        }
        return TokenCommit(generation: generation, existed: existed)
    }

    private func secret(
        of found: KeyringAccess.Found?, _ access: KeyringAccess
    ) throws(TokenStorageError) -> Secret? {
        guard let found else { return nil }
        let path = found.item.path
        let reply = try access.ask([access.link.secretMethod(path, access.session)])[0]
        guard let bytes = try access.secretBytes(reply, path) else { return nil }
        return try access.decode(bytes, found.item.encoding)
    }
}
