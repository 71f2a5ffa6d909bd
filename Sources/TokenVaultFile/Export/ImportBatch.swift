package import TokenVaultCore
internal import TokenVaultPlatform

/// Items of an import that are stored together, one batch after the other.
struct ImportBatch {
    let session: VaultSession
    let rule: ImportConflictRule
    private(set) var report = ImportReport()
    private var items: [TokenItem] = []
    private var identifiers: [ItemIdentifier] = []
    private var bytes = 0

    private static let mostItems = 1_000
    private static let mostBytes = 4 << 20

    init(session: VaultSession, rule: ImportConflictRule) {
        self.session = session
        self.rule = rule
    }

    mutating func add(_ item: TokenItem) throws(TokenStorageError) {
        items.append(item)
        identifiers.append(
            try session.log.codec.item(service: item.metadata.service, key: item.metadata.key))
        bytes += item.secret.count
        if items.count >= Self.mostItems || bytes >= Self.mostBytes { try finish() }
    }

    /// Stores the items added since the last batch.
    mutating func finish() throws(TokenStorageError) {
        guard !items.isEmpty else { return }
        let done = try session.importItems(items, named: identifiers, rule)
        report.add(done)
        items = []
        identifiers = []
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

    /// The number of items in the report.
    var handled: Int { added + replaced + skipped + unchanged }
}

extension VaultSession {
    /// Stores items of any services in one commit. Each has one of `identifiers`, in the same order.
    func importItems(
        _ items: [TokenItem], named identifiers: [ItemIdentifier], _ rule: ImportConflictRule
    ) throws(TokenStorageError) -> ImportReport {
        let outcome = ImportOutcome()
        _ = try queue.commit { [self] (view, add) throws(TokenStorageError) in
            var report = ImportReport()
            try Parallel.pipeline(items.count, each: CommitPlanner.part) {
                (range) throws(TokenStorageError) in
                try self.whileKeysAreReplaced { () throws(TokenStorageError) in
                    var planner = CommitPlanner(
                        session: self, view: view, now: self.clock(), changes: range.count)
                    var report = ImportReport()
                    try planner.add(items[range], identifiers[range], onConflict: rule, report: &report)
                    return (drafts: planner.drafts, report: report)
                }
            } take: { (part) throws(TokenStorageError) in
                report.add(part.report)
                try add(part.drafts)
            }
            outcome.set(report)
        }
        return outcome.report
    }
}

extension Validation {
    /// Throws unless an item is within the limits of storage.
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
    /// Returns whether both items have the same secret and details, apart from dates and commit.
    func isSame(as other: TokenItem) -> Bool {
        secret == other.secret && metadata.policy == other.metadata.policy
            && Bytes.areEqual(metadata.label, other.metadata.label)
            && metadata.attributes == other.metadata.attributes
            && metadata.expires == other.metadata.expires
    }
}
