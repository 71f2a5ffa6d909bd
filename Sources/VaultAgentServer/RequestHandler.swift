internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

/// Carries out a request and writes its answer. No vault is kept busy while a client reads.
struct RequestHandler: Sendable {
    let vaults: HeldVaults

    /// The consequence of a request in addition to its answer.
    enum Consequence {
        case none
        /// The changes that the connection sends from now on, their use of the vault, and its lock count
        /// before the first change.
        case subscription(TokenChanges, of: VaultUse, since: Int)
        /// The agent ends.
        case end
        /// No answer yet: another vault replaced the requested one, so the request is repeated.
        case again
    }

    /// Answers `request`, with its turn if it needs one. Calls `begin` with the vault before reading it.
    /// Calls `flush` between the parts of a long answer to send the written part.
    func answer(
        _ request: AgentRequest, in turn: TurnQueue.Turn?, _ writer: inout WireWriter,
        begin: (BlockingFileVault) -> Void, flush: () throws(SystemFailure) -> Void
    ) throws(SystemFailure) -> Consequence {
        switch request.operation {
        case .vaults:
            writer.begin(.result, id: request.id)
            let statuses = vaults.statuses
            writer.append(UInt16(clamping: statuses.count))
            for status in statuses { writer.append(status) }
            if !writer.end() { answer(request, &writer, with: .tooLargeAnswer) }
            return .none
        case .lockAll:
            vaults.lockAll(closingAtMost: vaults.limits.closingTime)
            answerNothing(request, &writer)
            return .none
        case .stop:
            answerNothing(request, &writer)
            return .end
        case .lock, .close:
            let isHeld =
                if case .lock = request.operation { vaults.lock(request.vault) } else {
                    vaults.close(request.vault)
                }
            if isHeld { answerNothing(request, &writer) } else { answerNotHeld(request, &writer) }
            return .none
        default: break
        }
        let outcome: Result<Consequence, SystemFailure>
        do throws(TokenStorageError) {
            outcome = try answerOfVault(request, in: turn, &writer, begin: begin, flush: flush)
        } catch {
            answer(request, &writer, with: error)
            return .none
        }
        return try outcome.get()
    }

    /// Answers with an error.
    func answer(_ request: AgentRequest, _ writer: inout WireWriter, with error: TokenStorageError) {
        writer.begin(.failure, id: request.id)
        writer.append(error)
        _ = writer.end()
    }

    private func answerNothing(_ request: AgentRequest, _ writer: inout WireWriter) {
        writer.begin(.result, id: request.id)
        _ = writer.end()
    }

    private func answerNotHeld(_ request: AgentRequest, _ writer: inout WireWriter) {
        writer.begin(.notHeld, id: request.id)
        _ = writer.end()
    }

    private func answerOfVault(
        _ request: AgentRequest, in turn: TurnQueue.Turn?, _ writer: inout WireWriter,
        begin: (BlockingFileVault) -> Void, flush: () throws(SystemFailure) -> Void
    ) throws(TokenStorageError) -> Result<Consequence, SystemFailure> {
        if case .unlock(let order) = request.operation {
            guard let turn else { throw .othersUnlock }
            let use = try vaults.unlock(request.vault, order, in: turn)
            defer { withExtendedLifetime(use) {} }
            return .success(try answerFacts(of: use.vault, request, &writer))
        }
        let use: VaultUse
        switch vaults.holding(request.vault, for: request.operation.use) {
        case .open(let held): use = held
        case .closed(let closed):
            try answer(request, about: closed, &writer)
            return .success(.none)
        case .none:
            answerNotHeld(request, &writer)
            return .success(.none)
        }
        defer { withExtendedLifetime(use) {} }
        let vault = use.vault
        begin(vault)
        do throws(TokenStorageError) {
            return try answer(request, about: use, &writer, flush: flush)
        } catch {
            // If the vault was released meanwhile, nothing was done, and the error says nothing about the
            // vault at the path now.
            let now = vaults.vault(request.vault)
            if now !== vault, error.code != .outcomeUnknown {
                if now != nil { return .success(.again) }
            } else if !request.operation.isReading || !vaults.closeIfReplaced(request.vault, after: error) {
                throw error
            }
            answerNotHeld(request, &writer)
            return .success(.none)
        }
    }

    /// Answers a request about a held vault.
    private func answer(
        _ request: AgentRequest, about use: VaultUse, _ writer: inout WireWriter,
        flush: () throws(SystemFailure) -> Void
    ) throws(TokenStorageError) -> Result<Consequence, SystemFailure> {
        let vault = use.vault
        try checkPlace(of: vault, request)
        switch request.operation {
        case .secret(let service, let key):
            let secret = try vault.storage(service: service).secret(for: key)
            writer.begin(.result, id: request.id)
            writer.append(secret) { writer.append(secret: $0) }
        case .item(let service, let key):
            let item = try vault.storage(service: service).item(for: key)
            writer.begin(.result, id: request.id)
            writer.append(item) { writer.append($0) }
        case .metadata(let service, let key):
            let metadata = try vault.storage(service: service).metadata(for: key)
            writer.begin(.result, id: request.id)
            writer.append(metadata) { writer.append($0) }
        case .list(let service, let query):
            let listing =
                if let service { try vault.storage(service: service).list(query) } else {
                    try vault.listAllServices(query)
                }
            return answer(listing, request, &writer, flush: flush)
        case .history(let service, let key):
            let listing = try vault.storage(service: service).history(of: key)
            return answer(listing, request, &writer, flush: flush)
        case .commit(let service, let changes):
            let commit = try vault.storage(service: service).commit(changes)
            writer.begin(.result, id: request.id)
            writer.append(commit)
        case .undo(let service, let key, let generation):
            let commit = try vault.storage(service: service).undo(key, to: generation)
            writer.begin(.result, id: request.id)
            writer.append(commit)
        case .deleteAll(let service):
            let count = try vault.storage(service: service).deleteAll()
            writer.begin(.result, id: request.id)
            writer.append(UInt32(clamping: count))
        case .state: return .success(try answerFacts(of: vault, request, &writer))
        case .status:
            guard !vaults.closeIfReplaced(request.vault), let status = try vaults.status(of: request.vault)
            else {
                answerNotHeld(request, &writer)
                return .success(.none)
            }
            writer.begin(.result, id: request.id)
            writer.append(status)
        case .subscribe(let service):
            let locks = vault.lockCount
            let changes = FileTokenStorage(vault, service: service).changes()
            answerNothing(request, &writer)
            return .success(.subscription(changes, of: use, since: locks))
        case .unlock, .lock, .close, .vaults, .lockAll, .stop, .commitPart: break
        }
        if !writer.end() { throw .tooLargeAnswer }
        return .success(.none)
    }

    /// Answers a request about a vault that was closed when it locked. If another vault is at its path now,
    /// answers that the vault is not held. A vault that was empty and not written to since has no items.
    private func answer(
        _ request: AgentRequest, about closed: ClosedVault, _ writer: inout WireWriter
    ) throws(TokenStorageError) {
        let path = request.vault.path
        guard !vaults.forgetIfReplaced(closed, at: path) else { return answerNotHeld(request, &writer) }
        switch request.operation {
        case .state:
            writer.begin(.result, id: request.id)
            writer.append(closed.facts)
        case .status:
            writer.begin(.result, id: request.id)
            writer.append(vaults.status(of: closed, at: path))
        case .secret, .item, .metadata:
            guard closed.isKnownToBeEmpty(at: path) else { throw closed.locked(request.operation.name) }
            writer.begin(.result, id: request.id)
            writer.append(flag: false)
        case .list, .history:
            guard closed.isKnownToBeEmpty(at: path) else { throw closed.locked(request.operation.name) }
            writer.begin(.result, id: request.id)
            writer.appendEnd(of: TokenListing(items: []))
        default: throw closed.locked(request.operation.name)
        }
        _ = writer.end()
    }

    /// Checks before a read that the vault's file is still the file at its path. The agent could read a
    /// removed or replaced file for as long as it runs, but other processes do not see that file. Throws the
    /// failure to read the present file. The client may open another vault's file itself.
    private func checkPlace(
        of vault: BlockingFileVault, _ request: AgentRequest
    ) throws(TokenStorageError) {
        guard request.operation.isReading else { return }
        do throws(TokenStorageError) {
            try vault.refresh(thoroughly: false)
        } catch {
            var error = error
            error.operation = request.operation.name
            throw error
        }
    }

    private func answerFacts(
        of vault: BlockingFileVault, _ request: AgentRequest, _ writer: inout WireWriter
    ) throws(TokenStorageError) -> Consequence {
        try vault.refresh()
        let storage = vault.storage(service: "")
        let facts = VaultInfo(
            identifier: vault.identifier, state: try vault.lockState(),
            supportedPolicies: storage.supportedPolicies, defaultPolicy: storage.defaultPolicy)
        writer.begin(.result, id: request.id)
        writer.append(facts)
        _ = writer.end()
        return .none
    }

    /// Writes a listing in pages, and sends each page before the next is written.
    private func answer(
        _ listing: TokenListing, _ request: AgentRequest, _ writer: inout WireWriter,
        flush: () throws(SystemFailure) -> Void
    ) -> Result<Consequence, SystemFailure> {
        writer.begin(.part, id: request.id)
        for item in listing.items {
            if writer.isPageFull {
                _ = writer.end()
                do { try flush() } catch { return .failure(error) }
                writer.begin(.part, id: request.id)
            }
            writer.append(item)
        }
        _ = writer.end()
        writer.begin(.result, id: request.id)
        writer.appendEnd(of: listing)
        _ = writer.end()
        return .success(.none)
    }
}

extension AgentOperation {
    /// Whether the answer has data of one vault, and nothing is changed.
    fileprivate var isReading: Bool {
        switch self {
        case .secret, .item, .metadata, .list, .history, .state: true
        default: false
        }
    }

    /// The kind of use of the vault.
    fileprivate var use: VaultUses.Kind {
        switch self {
        case .commit, .commitPart, .undo, .deleteAll: .changing
        case .subscribe: .lasting
        default: .reading
        }
    }

    /// The operation's name in errors.
    fileprivate var name: String {
        switch self {
        case .secret, .item: "retrieve"
        case .metadata: "info"
        case .list: "list"
        case .state, .status: "status"
        case .commit, .commitPart: "commit"
        case .deleteAll: "delete"
        case .history: "history"
        case .undo: "undo"
        case .subscribe: "watch"
        case .unlock: "unlock"
        case .lock, .lockAll, .close: "lock"
        case .vaults, .stop: "agent"
        }
    }
}

extension TokenStorageError {
    /// The error for an answer that does not fit into a frame.
    fileprivate static var tooLargeAnswer: TokenStorageError {
        TokenStorageError(.tooLarge, operation: "retrieve", backend: AgentEndpoint.backend)
    }
}
