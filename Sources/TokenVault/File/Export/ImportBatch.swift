internal import TokenVaultPlatform

/// Items of an import that are stored together, a batch after the other.
struct ImportBatch {
    let session: VaultSession
    let rule: ImportConflictRule
    private(set) var report = ImportReport()
    private var items: [TokenItem] = []
    private var bytes = 0

    private static let mostItems = 1_000
    private static let mostBytes = 4 << 20

    init(session: VaultSession, rule: ImportConflictRule) {
        self.session = session
        self.rule = rule
    }

    mutating func add(_ item: TokenItem) throws(TokenStorageError) {
        items.append(item)
        bytes += item.secret.count
        if items.count >= Self.mostItems || bytes >= Self.mostBytes { try finish() }
    }

    /// Stores what was added since.
    mutating func finish() throws(TokenStorageError) {
        guard !items.isEmpty else { return }
        let done = try session.importItems(items, rule)
        report.add(done)
        items = []
        bytes = 0
    }
}

extension ImportReport {
    fileprivate mutating func add(_ other: ImportReport) {
        added += other.added
        replaced += other.replaced
        skipped += other.skipped
        unchanged += other.unchanged
    }

    /// How many items it tells of.
    var handled: Int { added + replaced + skipped + unchanged }
}

extension VaultSession {
    /// Stores items of any services in one commit.
    func importItems(
        _ items: [TokenItem], _ rule: ImportConflictRule
    ) throws(TokenStorageError) -> ImportReport {
        let outcome = ImportOutcome()
        _ = try queue.commit { [self] (view) throws(TokenStorageError) in
            try refreshKeys()
            let parts = try Parallel.map(items.count, least: 256) { (range) throws(TokenStorageError) in
                try self.plan(items[range], rule, view)
            }
            outcome.set(parts.reduce(into: ImportReport()) { $0.add($1.report) })
            return parts.count == 1 ? parts[0].drafts : parts.flatMap(\.drafts)
        }
        return outcome.report
    }

    private func plan(
        _ items: ArraySlice<TokenItem>, _ rule: ImportConflictRule, _ view: LogView
    ) throws(TokenStorageError) -> (drafts: [FrameDraft], report: ImportReport) {
        var report = ImportReport()
        var drafts: [FrameDraft] = []
        drafts.reserveCapacity(items.count)
        var tags: [String: UInt64] = [:]
        for (position, item) in items.enumerated() {
            if position.isMultiple(of: 64) { try log.lockTimeout.end.check() }
            let service = item.metadata.service
            let tag = if let known = tags[service] { known } else { try log.codec.tag(ofService: service) }
            tags[service] = tag
            var planner = CommitPlanner(
                session: self, service: service, view: view, now: item.metadata.modified, tag: tag)
            try planner.add(item, onConflict: rule, report: &report)
            drafts += planner.drafts
        }
        return (drafts, report)
    }
}

extension Validation {
    /// An item is within the limits of what can be stored.
    package func check(_ item: TokenItem) throws(TokenStorageError) {
        let metadata = item.metadata
        try check(service: metadata.service)
        try check(key: metadata.key)
        try check(secret: item.secret)
        try check(
            details: TokenDetails(
                label: metadata.label, attributes: metadata.attributes,
                expiry: metadata.expires.map { .at($0) }))
    }
}

extension TokenItem {
    /// Whether both have the same secret and say the same of it, but for when and in which commit.
    func isSame(as other: TokenItem) -> Bool {
        secret == other.secret && metadata.policy == other.metadata.policy
            && Bytes.areEqual(metadata.label, other.metadata.label)
            && metadata.attributes == other.metadata.attributes
            && metadata.expires == other.metadata.expires
    }
}
