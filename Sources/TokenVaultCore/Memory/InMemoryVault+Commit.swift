#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// Writes. A commit checks everything before it changes anything. Events are published under the lock, and
/// therefore in the order of generations.
extension InMemoryVault {
    func commit(
        _ changes: [TokenChange], service: String, at place: Place, defaultPolicy: AccessPolicy, now: Date,
        state: inout State, call: Validation
    ) throws(TokenStorageError) -> TokenCommit {
        let existed = try check(
            changes, among: state[place], defaultPolicy: defaultPolicy, state: state, call: call)
        let effective = zip(changes, existed).filter { change, existed in existed || !change.isDelete }
        guard !effective.isEmpty else { return TokenCommit(generation: nil, existed: existed) }

        let generation = try state.nextGeneration(call.operation)
        // Swapped out, so that the dictionary is changed in place: otherwise each commit would copy it.
        var items: [TokenKey: Item] = [:]
        swap(&items, &state[place])
        var events: [TokenKey: TokenEvent] = [:]
        for (change, _) in effective {
            let current = items.removeValue(forKey: change.key)
            events[change.key] = .deleted(change.key, generation)
            guard let secret = change.secret(replacing: current?.secret) else { continue }
            let metadata = CommitRules.metadata(
                after: change, current: current?.metadata, service: service,
                defaultPolicy: defaultPolicy, now: now, generation: generation)
            items[metadata.key] = Item(
                metadata: metadata, secret: secret, isOfOriginalDevice: state.device.isOriginal)
            events[metadata.key] = .stored(metadata.key, generation)
        }
        state[place] = items
        for event in events.values { hub.publish(service: service, event) }
        return TokenCommit(generation: generation, existed: existed)
    }

    func deleteAll(
        service: String, at place: Place, state: inout State, call: Validation
    ) throws(TokenStorageError) -> Int {
        let items = state[place]
        for item in items.values {
            if let code = state.refusal(of: item) { throw failure(code, call) }
        }
        guard !items.isEmpty else { return 0 }
        let generation = try state.nextGeneration(call.operation)
        state[place] = [:]
        for key in items.keys.sorted() {
            hub.publish(service: service, .deleted(key, generation))
        }
        return items.count
    }

    /// Checks every change, and returns for each whether its key is present.
    private func check(
        _ changes: [TokenChange], among items: [TokenKey: Item], defaultPolicy: AccessPolicy, state: State,
        call: Validation
    ) throws(TokenStorageError) -> [Bool] {
        for change in changes {
            try check(change, among: items, defaultPolicy: defaultPolicy, state: state, call: call)
        }
        return changes.map { items[$0.key] != nil }
    }

    private func check(
        _ change: TokenChange, among items: [TokenKey: Item], defaultPolicy: AccessPolicy, state: State,
        call: Validation
    ) throws(TokenStorageError) {
        let current = items[change.key]
        if let current, let code = state.refusal(of: current) { throw failure(code, call) }
        var isTargetTaken = false
        if case .rename(let target) = change.action, let taken = items[target] {
            if let code = state.refusal(of: taken) { throw failure(code, call) }
            isTargetTaken = true
        }
        try CommitRules.check(
            change, current: current?.metadata.generation, isTargetTaken: isTargetTaken,
            operation: call.operation, backend: call.backend)
        if change.isDelete { return }
        let policy = CommitRules.policy(
            after: change, current: current?.metadata.policy, defaultPolicy: defaultPolicy)
        guard state.supportedPolicies.contains(policy) else {
            throw failure(.unsupportedPolicy, call)
        }
        if let code = state.refusal(of: policy) { throw failure(code, call) }
    }

    private func failure(_ code: TokenStorageError.Code, _ call: Validation) -> TokenStorageError {
        TokenStorageError(code, operation: call.operation, backend: call.backend)
    }
}

extension TokenChange {
    fileprivate var isDelete: Bool { if case .delete = action { true } else { false } }

    /// Returns the item's secret after this change; `nil` when there is no item then.
    fileprivate func secret(replacing current: Secret?) -> Secret? {
        switch action {
        case .store(let secret): secret
        case .update, .rename: current
        case .delete: nil
        }
    }
}
