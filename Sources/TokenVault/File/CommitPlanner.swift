internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// Turns the changes of one commit into records, from what the log holds under the lock.
struct CommitPlanner {
    private let session: VaultSession
    private let service: String
    private let view: LogView
    private let now: Date
    /// What frames of the service carry, if it is known already.
    private let tag: UInt64?
    private(set) var drafts: [FrameDraft] = []
    private(set) var existed: [Bool] = []

    init(session: VaultSession, service: String, view: LogView, now: Date, tag: UInt64? = nil) {
        self.session = session
        self.service = service
        self.view = view
        self.now = now
        self.tag = tag
    }

    /// Plans one change.
    mutating func add(_ change: TokenChange) throws(TokenStorageError) {
        let item = try identifier(of: change.key)
        let found = try existing(item)
        var target: ItemIdentifier?
        if case .rename(let key) = change.action { target = try identifier(of: key) }
        let isTargetTaken = if let target { try existing(target) != nil } else { false }
        try CommitRules.check(
            change, current: found.map { Generation(rawValue: $0.found.generation) },
            isTargetTaken: isTargetTaken, operation: "", backend: TokenStorageError.fileBackend)
        existed.append(found != nil)
        if case .delete = change.action {
            if let found { try delete(item, found.found) }
            return
        }
        let current: TokenMetadata? = if let found { try metadata(of: item, found) } else { nil }
        let metadata = CommitRules.metadata(
            after: change, current: current, service: service, defaultPolicy: session.defaultPolicy,
            now: now, generation: Generation(rawValue: view.generation))
        let secret: Secret
        if case .store(let given) = change.action {
            secret = given
        } else {
            guard let found else { throw .file(.notFound) }
            secret = try self.secret(of: item, found)
        }
        if target != nil, let found { try delete(item, found.found) }
        try store(secret, metadata, as: target ?? item)
    }

    /// Plans an item of an import, which keeps its dates.
    mutating func add(
        _ item: TokenItem, onConflict rule: ImportConflictRule, report: inout ImportReport
    ) throws(TokenStorageError) {
        let identifier = try identifier(of: item.metadata.key)
        if let found = try existing(identifier) {
            let there = TokenItem(
                metadata: try metadata(of: identifier, found), secret: try secret(of: identifier, found))
            if there.isSame(as: item) {
                report.unchanged += 1
                return
            }
            switch rule {
            case .fail:
                throw .file(
                    .alreadyExists, underlying: "a key has another value here",
                    advice: "nothing of this commit was imported; say whether to skip or replace such keys")
            case .skip:
                report.skipped += 1
                return
            case .replace: report.replaced += 1
            }
        } else {
            report.added += 1
        }
        try store(item.secret, item.metadata, as: identifier)
    }

    /// Plans the deletion of an item.
    mutating func delete(_ item: ItemIdentifier, _ found: LogView.Found) throws(TokenStorageError) {
        guard let keys = try access(found) else { return }
        let metadata = try self.metadata(of: item, (found, keys))
        drafts.append(
            try session.sealer.deletion(
                item,
                metadata: ItemCoding.metadata(
                    service: metadata.service, key: metadata.key, label: nil, attributes: [:],
                    created: metadata.created, modified: now, expires: nil),
                keys: keys, serviceTag: found.serviceTag, generation: view.generation))
    }

    private mutating func store(
        _ secret: Secret, _ metadata: TokenMetadata, as item: ItemIdentifier
    ) throws(TokenStorageError) {
        let keys: ClassKeys
        switch session.ring.accessForWriting(metadata.policy) {
        case .keys(let held): keys = held
        case .locked: throw session.ring.lockedError
        case .notPermitted where metadata.policy == .whenPasscodeSetThisDeviceOnly:
            throw .file(.notPermitted, advice: "unlock with a passphrase")
        case .notPermitted:
            throw .file(
                .notPermitted,
                advice: "unlock with a passphrase, or choose a policy that may be read after first unlock")
        case .wrongDevice, .destroyed, .unsupported:
            throw .file(.unsupportedPolicy, advice: adviceAgainst(metadata.policy))
        }
        let tag = if let tag { tag } else { try session.log.codec.tag(ofService: service) }
        let bytes = ItemCoding.metadata(
            service: service, key: metadata.key, label: metadata.label, attributes: metadata.attributes,
            created: metadata.created, modified: metadata.modified, expires: metadata.expires)
        drafts.append(
            try session.sealer.item(
                item, metadata: bytes, secret: secret, keys: keys,
                serviceTag: tag, generation: view.generation))
    }

    private func adviceAgainst(_ policy: AccessPolicy) -> String {
        let facts = session.ring.facts
        if policy == .whenPasscodeSetThisDeviceOnly, facts.isEnrolled, !facts.hasPasscodeSlot {
            return "add a passphrase first; items of this policy live as long as it does"
        }
        return
            "this device has no key in the vault; enrol it (\"vaultctl device enrol\"), or use when-unlocked or "
            + "after-first-unlock"
    }

    private func identifier(of key: TokenKey) throws(TokenStorageError) -> ItemIdentifier {
        try session.log.codec.item(service: service, key: key)
    }

    /// The item and the keys that open it; `nil` when it is absent. Throws when it may not be touched.
    private func existing(
        _ item: ItemIdentifier
    ) throws(TokenStorageError) -> (found: LogView.Found, keys: ClassKeys)? {
        guard let found = try view[item], let keys = try access(found) else { return nil }
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
        let bytes = try view.metadata(of: existing.found)
        let opened = try session.sealer.openMetadata(
            bytes, in: 0..<bytes.count, of: item, generation: existing.found.generation,
            keys: existing.keys)
        guard let opened else { throw .file(.corrupt, underlying: "a damaged item") }
        return opened
    }

    private func secret(
        of item: ItemIdentifier, _ existing: (found: LogView.Found, keys: ClassKeys)
    ) throws(TokenStorageError) -> Secret {
        let bytes = try view.body(of: existing.found)
        let opened = try session.sealer.openBody(
            bytes, in: 0..<bytes.count, of: item, generation: existing.found.generation,
            keys: existing.keys)
        guard let opened else { throw .file(.corrupt, underlying: "a damaged item") }
        return opened
    }
}
