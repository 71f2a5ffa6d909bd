/// One run of a migration: the counts so far and the steps of one item.
struct MigrationRun {
    let options: TokenMigration.Options
    let progress: ((MigrationProgress) -> Void)?
    var summary = MigrationSummary()

    /// The items at the source that other programs made, by service.
    var others: [TokenKey: Set<TokenKey>] = [:]

    /// The number of attempts to copy an item that changes at the source while it is moved.
    private static let rounds = 16

    /// Moves the items of `pairs`. `hidden` is the source's own count of items that it does not show, if
    /// there is one. That count is more accurate than the sum over `pairs`.
    mutating func move(_ pairs: [MigrationPair], hidden: ServiceListing?) async throws(MigrationStop) {
        var work: [(pair: MigrationPair, keys: [TokenKey])] = []
        for pair in pairs {
            if let keys = options.keys {
                work.append((pair, keys.sorted()))
            } else {
                let listing: TokenListing
                do { listing = try await pair.source.list(.all) } catch { throw .init(error, at: .source) }
                work.append((pair, listing.items.map(\.key)))
                summary.hidden += listing.hidden
                summary.hiddenReasons.merge(listing.hiddenReasons, uniquingKeysWith: +)
                summary.passedOver += listing.passedOver
                if !listing.keysOfOthers.isEmpty {
                    others[TokenKey(pair.source.service)] = listing.keysOfOthers
                }
            }
        }
        if let hidden, options.keys == nil {
            // Zero may be out of date: only the listings count items that were locked after it was taken.
            if hidden.hidden > 0 {
                summary.hidden = hidden.hidden
                summary.hiddenReasons = hidden.hiddenReasons
            }
            summary.passedOver += hidden.passedOver
        }
        let total = work.reduce(0) { $0 + $1.keys.count }
        if options.conflicts == .fail {
            for (pair, keys) in work { try await lookForConflicts(keys, pair) }
            if summary.conflicts > 0 { throw Self.conflict }
        }
        var done = 0
        for (pair, keys) in work {
            for key in keys {
                if Task.isCancelled { throw .init(.cancelled, at: .source, .missing(.cancelledMigration)) }
                try await move(key, pair)
                done += 1
                progress?(MigrationProgress(done: done, total: total))
            }
        }
    }

    /// Marks as left each of `keys` that has a different item at the destination.
    private mutating func lookForConflicts(
        _ keys: [TokenKey], _ pair: MigrationPair
    ) async throws(MigrationStop) {
        let listing: TokenListing
        do { listing = try await pair.destination.list(.all) } catch {
            // The destination has no such service: each item is left, with that reason.
            if error.code == .invalidArgument { return }
            throw .init(error, at: .destination)
        }
        let taken = Set(listing.items.map(\.key))
        guard !taken.isEmpty else { return }
        for key in keys where taken.contains(key) && !isOthers(key, pair) {
            if Task.isCancelled { throw .init(.cancelled, at: .source, .missing(.cancelledMigration)) }
            guard case .item(let item) = try await pair.read(key) else { continue }
            let copy = copy(of: item)
            guard pair.destination.supportedPolicies.contains(copy.policy) else { continue }
            switch try await pair.look(for: copy) {
            case .other, .unreadable:
                summary.found += 1
                leave(key, pair, .conflict)
            case .nothing, .same, .unusable: continue
            }
        }
    }

    private static let conflict = MigrationStop(
        .conflict, at: .destination, .changedMeanwhile(.destination))

    /// Moves one item. Copies it again when it changed at the source before it could be deleted there.
    private mutating func move(_ key: TokenKey, _ pair: MigrationPair) async throws(MigrationStop) {
        let before = summary
        var ours: Generation?
        for _ in 0..<Self.rounds {
            summary = before
            let item: TokenItem
            switch try await pair.read(key) {
            case .item(let read): item = read
            case .absent:
                if ours == nil { summary.absent += 1 } else { summary.deletedMeanwhile += 1 }
                return
            case .left(let code):
                summary.found += 1
                return leave(key, pair, code)
            }
            summary.found += 1
            guard let there = try await place(copy(of: item), ours, pair) else { return }
            summary.verified += 1
            guard options.deletesAtSource else { return }
            if isOthers(key, pair) {
                summary.keptForOthers += 1
                return
            }
            // The identical item at both ends means that source and destination are one storage, which has
            // the only copy.
            guard there != item.metadata else {
                throw .init(.invalidArgument, at: .destination, .limit(.sameStorage))
            }
            if try await delete(item.metadata, pair) { return }
            ours = there.generation
        }
        summary = before
        summary.found += 1
        leave(key, pair, .conflict)
    }

    /// Returns the intended item at the destination.
    private func copy(of item: TokenItem) -> MigrationCopy {
        MigrationCopy(of: item, policy: options.policies[item.metadata.policy] ?? item.metadata.policy)
    }

    /// Stores `copy` at the destination unless it is already there, and returns its metadata there. Returns
    /// `nil` when the item is left. `ours` is the generation that an earlier round stored, which this round
    /// may replace.
    private mutating func place(
        _ copy: MigrationCopy, _ ours: Generation?, _ pair: MigrationPair
    ) async throws(MigrationStop) -> TokenMetadata? {
        guard pair.destination.supportedPolicies.contains(copy.policy) else {
            leave(copy.key, pair, .unsupportedPolicy)
            return nil
        }
        let expectation: TokenChange.Expectation
        switch try await pair.look(for: copy) {
        case .nothing: expectation = .absent
        case .same(let metadata):
            summary.alreadyThere += 1
            return metadata
        case .other(let generation) where options.conflicts == .replace || generation == ours:
            expectation = .generation(generation)
        case .other, .unreadable: return try conflict(copy.key, pair)
        case .unusable(let code):
            leave(copy.key, pair, code)
            return nil
        }
        switch try await pair.store(copy, expectation) {
        case .stored(let generation):
            summary.copied += 1
            switch try await pair.look(for: copy) {
            case .same(let metadata): return metadata
            // Another program changed the item since: its version is there now.
            case .other(let now) where now != generation: return try conflict(copy.key, pair)
            default:
                throw .init(
                    .corrupt, at: .destination, .damaged(.migratedItem))
            }
        case .moved:
            // Another run of the same migration may have been first.
            if case .same(let metadata) = try await pair.look(for: copy) {
                summary.alreadyThere += 1
                return metadata
            }
            return try conflict(copy.key, pair)
        case .left(let code):
            leave(copy.key, pair, code)
            return nil
        }
    }

    private mutating func conflict(
        _ key: TokenKey, _ pair: MigrationPair
    ) throws(MigrationStop) -> TokenMetadata? {
        if isOthers(key, pair) {
            // The item stays at the source in any case, also in a later run after an item of TokenVault was
            // deleted.
            summary.found -= 1
            summary.passedOver += 1
            return nil
        }
        leave(key, pair, .conflict)
        if options.conflicts == .fail { throw Self.conflict }
        return nil
    }

    /// Returns whether another program made the item of `key` at the source.
    private func isOthers(_ key: TokenKey, _ pair: MigrationPair) -> Bool {
        others[TokenKey(pair.source.service)]?.contains(key) ?? false
    }

    /// Deletes the copied item at the source. Returns false when a newer one is there.
    private mutating func delete(
        _ item: TokenMetadata, _ pair: MigrationPair
    ) async throws(MigrationStop) -> Bool {
        do {
            if try await pair.source.compareAndDelete(for: item.key, expected: item.generation) {
                summary.deleted += 1
            } else {
                summary.deletedMeanwhile += 1
            }
            return true
        } catch {
            if error.code == .conflict { return false }
            throw .init(error, at: .source)
        }
    }

    private mutating func leave(
        _ key: TokenKey, _ pair: MigrationPair, _ code: TokenStorageError.Code
    ) {
        summary.remaining.append(
            MigrationSummary.Remaining(service: pair.source.service, key: key, code: code))
    }
}
