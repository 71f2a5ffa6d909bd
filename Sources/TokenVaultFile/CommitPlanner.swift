internal import TokenVaultCore
internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// Turns changes of one commit into records, from what the log holds under the lock.
struct CommitPlanner: ~Copyable {
    private let session: VaultSession
    private let view: LogView
    private let now: Date
    private(set) var drafts: [FrameDraft] = []
    private(set) var existed: [Bool] = []
    private(set) var policyResets: [PolicyReset] = []
    // The tag of the previous change's service, which the next change may need as well.
    private var tag: (service: String, value: UInt64)?
    private var keys: ClassKeys?
    private var supplies: ItemSealer.Supplies

    /// Creates a planner for about `changes` changes.
    init(session: VaultSession, view: LogView, now: Date, changes: Int) {
        self.session = session
        self.view = view
        self.now = now
        supplies = ItemSealer.Supplies(for: changes)
        drafts.reserveCapacity(changes)
        existed.reserveCapacity(changes)
    }

    /// The number of changes planned by one planner while those before them are written into frames.
    static let part = 256
    /// The number of items to look up at a time.
    private static let run = 64

    /// Plans changes of items of `service`.
    mutating func add(
        _ changes: ArraySlice<TokenChange>, of service: String
    ) throws(TokenStorageError) {
        for start in stride(from: changes.startIndex, to: changes.endIndex, by: Self.run) {
            let run = changes[start..<min(start + Self.run, changes.endIndex)]
            var items: [ItemIdentifier] = []
            items.reserveCapacity(run.count)
            for position in run.indices { items.append(try identifier(of: run[position].key, service)) }
            let found = try view.find(items)
            for (place, position) in run.indices.enumerated() {
                try add(run[position], of: service, items[place], found[place])
            }
        }
    }

    private mutating func add(
        _ change: TokenChange, of service: String, _ item: ItemIdentifier, _ found: LogView.Found?
    ) throws(TokenStorageError) {
        let found = try existing(found)
        var target: ItemIdentifier?
        if case .rename(let key) = change.action { target = try identifier(of: key, service) }
        let isTargetTaken = if let target { try existing(view[target]) != nil } else { false }
        try CommitRules.check(
            change, current: found.map { Generation(rawValue: $0.found.generation) },
            isTargetTaken: isTargetTaken, operation: "", backend: TokenStorageError.fileBackend)
        existed.append(found != nil)
        if case .delete = change.action {
            if let found { try delete(item, found.found) }
            return
        }
        let current: Current? = if let found { try self.current(item, found) } else { nil }
        let metadata = CommitRules.metadata(
            after: change, current: current?.stored.metadata, service: service,
            keepsPolicy: keepsPolicy(change, current), defaultPolicy: session.defaultPolicy,
            now: now, generation: Generation(rawValue: view.generation))
        if let old = current?.stored.metadata.policy, old != metadata.policy, change.details.policy == nil {
            policyResets.append(PolicyReset(key: metadata.key, from: old, to: metadata.policy))
        }
        let secret: Secret
        if case .store(let given) = change.action {
            secret = given
        } else {
            guard let found else { throw .file(.notFound) }
            secret = try self.secret(of: item, found)
        }
        if target != nil, let found { try delete(item, found.found) }
        let isChosen = change.details.policy != nil || current.map { $0.origin == .owner } ?? true
        try store(
            secret, metadata, as: target ?? item, isChosen: isChosen, replacing: target == nil ? current : nil
        )
    }

    /// An existing item, and the origin of its policy.
    private struct Current {
        let stored: StoredMetadata
        let keys: ClassKeys
        let origin: PolicyProof.Origin
    }

    private func current(
        _ item: ItemIdentifier, _ found: (found: LogView.Found, keys: ClassKeys)
    ) throws(TokenStorageError) -> Current {
        let stored = try stored(of: item, found)
        return Current(
            stored: stored, keys: found.keys,
            origin: session.ring.policyOrigin(of: stored, item, under: found.keys))
    }

    /// Returns whether an item stays under its policy where the change names none. A session with the root
    /// key puts no new secret under a policy that a limited session chose.
    private func keepsPolicy(_ change: TokenChange, _ current: Current?) -> Bool {
        guard case .store = change.action, session.ring.roots?.all != nil else { return true }
        return current?.origin != .limitedSession
    }

    /// Plans items of an import, which keep their dates. `items` and `identifiers` have the same indices.
    mutating func add(
        _ items: ArraySlice<TokenItem>, _ identifiers: ArraySlice<ItemIdentifier>,
        onConflict rule: ImportConflictRule, report: inout ImportReport
    ) throws(TokenStorageError) {
        for start in stride(from: items.startIndex, to: items.endIndex, by: Self.run) {
            try session.log.lockTimeout.end.check()
            let run = start..<min(start + Self.run, items.endIndex)
            let found = try view.find(identifiers[run])
            for (place, position) in run.enumerated() {
                try add(items[position], identifiers[position], found[place], rule, &report)
            }
        }
    }

    private mutating func add(
        _ item: TokenItem, _ identifier: ItemIdentifier, _ found: LogView.Found?,
        _ rule: ImportConflictRule, _ report: inout ImportReport
    ) throws(TokenStorageError) {
        var current: Current?
        if let found = try existing(found) {
            current = try self.current(identifier, found)
            let there = TokenItem(
                metadata: try metadata(of: identifier, found), secret: try secret(of: identifier, found))
            if there.isSame(as: item) {
                report.unchanged += 1
                return
            }
            switch rule {
            case .fail:
                throw .file(.alreadyExists, .differingValues(nil))
            case .skip:
                report.skipped += 1
                return
            case .replace: report.replaced += 1
            }
        } else {
            report.added += 1
        }
        try store(
            item.secret, item.metadata, as: identifier, isChosen: !item.metadata.isPolicyFromLimitedSession,
            replacing: current)
    }

    /// Plans the deletion of an item.
    mutating func delete(_ item: ItemIdentifier, _ found: LogView.Found) throws(TokenStorageError) {
        guard let keys = try access(found) else { return }
        let metadata = try self.metadata(of: item, (found, keys))
        drafts.append(
            try ItemSealer.deletion(
                item,
                metadata: ItemCoding.metadata(
                    StoredMetadata(
                        metadata: TokenMetadata(
                            key: metadata.key, service: metadata.service, policy: metadata.policy,
                            created: metadata.created, modified: now, generation: metadata.generation))),
                keys: keys, serviceTag: found.serviceTag, generation: view.generation))
    }

    /// Plans an item. `isChosen` says whether this session or the owner before it chose the policy.
    private mutating func store(
        _ secret: Secret, _ metadata: TokenMetadata, as item: ItemIdentifier, isChosen: Bool,
        replacing current: Current?
    ) throws(TokenStorageError) {
        let keys = try keysForWriting(metadata.policy)
        var proof = isChosen ? session.ring.policyProof(of: item, under: keys) : nil
        // Without the key of the proof, the owner's choice is carried over unchanged.
        if let current, current.origin == .unknown, current.keys === keys {
            proof = current.stored.policyProof
        }
        let bytes = ItemCoding.metadata(StoredMetadata(metadata: metadata, policyProof: proof))
        drafts.append(
            try ItemSealer.item(
                item, metadata: bytes, secret: secret, keys: keys, serviceTag: try tag(of: metadata.service),
                generation: view.generation, with: &supplies))
    }

    private mutating func keysForWriting(_ policy: AccessPolicy) throws(TokenStorageError) -> ClassKeys {
        // Keys that were wiped meanwhile seal nothing.
        if let keys, keys.policy == policy { return keys }
        switch session.ring.accessForWriting(policy) {
        case .keys(let held):
            keys = held
            return held
        case .locked: throw session.ring.lockedError
        case .closed: throw .file(.closed)
        case .notPermitted where policy == .whenPasscodeSetThisDeviceOnly:
            throw .file(.notPermitted, .permission(.passcodeItems))
        case .notPermitted:
            throw .file(.notPermitted, .permission(.storing))
        case .wrongDevice, .destroyed, .unsupported:
            throw .file(.unsupportedPolicy, .policyUnsupported(alternative(to: policy)))
        }
    }

    private mutating func tag(of service: String) throws(TokenStorageError) -> UInt64 {
        if let tag, Bytes.areEqual(tag.service, service) { return tag.value }
        let value = try session.log.codec.tag(ofService: service)
        tag = (service, value)
        return value
    }

    private func alternative(to policy: AccessPolicy) -> TokenStorageError.Reason.Alternative {
        let facts = session.ring.facts
        guard facts.isEnrolled, policy == .whenPasscodeSetThisDeviceOnly else { return .afterEnrolment }
        return facts.hasPasscodeSlot ? .afterNewEnrolment : .afterPassphrase
    }

    private func identifier(
        of key: TokenKey, _ service: String
    ) throws(TokenStorageError) -> ItemIdentifier {
        try session.log.codec.item(service: service, key: key)
    }

    /// Returns an item and the keys that open it; `nil` when it is absent. Throws when the item may not be
    /// changed.
    private func existing(
        _ found: LogView.Found?
    ) throws(TokenStorageError) -> (found: LogView.Found, keys: ClassKeys)? {
        guard let found, let keys = try access(found) else { return nil }
        return (found, keys)
    }

    private func access(_ found: LogView.Found) throws(TokenStorageError) -> ClassKeys? {
        try session.keys(
            of: session.ring.access(
                policy: found.policy, setTag: found.setTag, version: found.keyVersion))
    }

    private func metadata(
        of item: ItemIdentifier, _ existing: (found: LogView.Found, keys: ClassKeys)
    ) throws(TokenStorageError) -> TokenMetadata {
        try stored(of: item, existing).metadata
    }

    private func stored(
        of item: ItemIdentifier, _ existing: (found: LogView.Found, keys: ClassKeys)
    ) throws(TokenStorageError) -> StoredMetadata {
        let bytes = try view.metadata(of: existing.found)
        let opened = try ItemSealer.openMetadata(
            bytes, in: 0..<bytes.count, of: item, generation: existing.found.generation,
            valueTag: existing.found.valueTag, keys: existing.keys)
        guard let opened else { throw .file(.corrupt, .damaged(.item)) }
        return opened
    }

    private func secret(
        of item: ItemIdentifier, _ existing: (found: LogView.Found, keys: ClassKeys)
    ) throws(TokenStorageError) -> Secret {
        let bytes = try view.body(of: existing.found)
        let opened = try ItemSealer.openBody(
            bytes, in: 0..<bytes.count, of: item, generation: existing.found.generation,
            valueTag: existing.found.valueTag, keys: existing.keys)
        guard let opened else { throw .file(.corrupt, .damaged(.item)) }
        return opened
    }
}
