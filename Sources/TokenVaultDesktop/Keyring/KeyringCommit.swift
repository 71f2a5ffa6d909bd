internal import TokenVaultCore
internal import TokenVaultPlatform

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// Commits. A commit reads, decides and writes while no other TokenVault writes.
extension SecretService {
    /// Makes all of `changes` or none.
    func commit(
        _ changes: [TokenChange], to name: String, for call: BusCall
    ) throws(TokenStorageError) -> TokenCommit {
        try withKeyring(call) { (access) throws(TokenStorageError) in
            try access.asWriter { () throws(TokenStorageError) in
                try access.finishCommits(before: name)
                var plan = CommitPlan(service: name)
                for change in changes { try plan.add(change, access) }
                return try plan.perform(access)
            }
        }
    }

    /// Deletes every item of a service; returns how many there were.
    func deleteAll(of name: String, for call: BusCall) throws(TokenStorageError) -> Int {
        try withKeyring(call) { (access) throws(TokenStorageError) in
            try access.asWriter { () throws(TokenStorageError) in
                try access.finishCommits(before: name)
                var plan = CommitPlan(service: name)
                for found in try access.findToChange(name).values.sorted(by: {
                    $0.item.metadata.key < $1.item.metadata.key
                }) {
                    plan.delete(found)
                }
                return try plan.perform(access).existed.count
            }
        }
    }
}

extension KeyringAccess {
    /// Runs `body` while this process owns the writers' name on the bus, for one call at a time.
    ///
    /// The bus gives the name to one connection at a time, in the order they asked, and takes it back when
    /// a process ends. What `body` reads, no other TokenVault changes before `body` is done.
    func asWriter<Value>(
        _ body: () throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        // The name belongs to the connection: a thread that released it would take it from the other threads.
        try service.writers.alone(call) { () throws(TokenStorageError) in try asOnlyWriter(body) }
    }

    private func asOnlyWriter<Value>(
        _ body: () throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        let name = link.make.text(BusName.writer)
        call.deliver { $0.isWriter = false }
        let serial = try link.connection.send(
            .bus("RequestName", link.make.tuple([name, link.make.number(UInt32(0))])), for: call,
            isNameRequest: true)
        defer {
            link.connection.inbox.forgetWriter()
            link.connection.tell(.bus("ReleaseName", link.make.tuple([name])))
        }
        // Also asks whether the default keyring is still the same one: another writer may have chosen
        // another.
        let alias = try CollectionFinder.defaultMethod(service, link).map {
            (method) throws(TokenStorageError) in
            try link.connection.send(method, for: call)
        }
        let replies = try link.connection.replies(to: [serial] + (alias.map { [$0] } ?? []), for: call)
        let reply = replies[0]
        if case .error(BusErrorName.accessDenied, let text) = reply {
            throw .secretService(.notPermitted, .writerNameDenied(name: BusName.writer, text))
        }
        _ = try KeyringLink.values(reply, "(u)")
        try call.wait(isLost: { link.isLost }) { $0.isWriter ? () : nil }
        if alias != nil, case .values(let values) = replies[1], values.isOf("(o)"),
            values[0].text != collection ?? "/"
        {
            link.forgetCollection()
            memory.forgetAll()
            throw Self.collectionIsGone
        }
        return try body()
    }
}
