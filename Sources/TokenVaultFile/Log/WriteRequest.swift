internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultPlatform

/// One commit that waits for its turn: its records are decided under the lock, from the log's contents then.
final class WriteRequest: Sendable {
    /// Makes the records of a commit from the log's contents, and gives them to `add`, all at once or in
    /// parts; none when nothing changes. Its error, or an error of `add`, refuses the commit.
    typealias Preparation =
        @Sendable (
            _ view: LogView, _ add: ([FrameDraft]) throws(TokenStorageError) -> Void
        ) throws(TokenStorageError) -> Void

    let prepare: Preparation
    private let finished: @Sendable (Result<Generation?, TokenStorageError>) -> Void

    private enum Stage { case waiting, begun, over }
    private let stage = Mutex(Stage.waiting)

    init(
        prepare: @escaping Preparation,
        finished: @escaping @Sendable (Result<Generation?, TokenStorageError>) -> Void
    ) {
        self.prepare = prepare
        self.finished = finished
    }

    /// Claims the request for writing; returns false when it was cancelled before.
    func begin() -> Bool {
        stage.withLock { stage in
            guard stage == .waiting else { return false }
            stage = .begun
            return true
        }
    }

    /// Gives the request up unless it has begun; a write that has begun runs to its end.
    func cancel() {
        let cancelled = stage.withLock { stage in
            guard stage == .waiting else { return false }
            stage = .over
            return true
        }
        if cancelled { finished(.failure(.file(.cancelled))) }
    }

    /// Reports the outcome, once.
    func finish(_ result: Result<Generation?, TokenStorageError>) {
        let first = stage.withLock { stage in
            defer { stage = .over }
            return stage == .begun
        }
        if first { finished(result) }
    }
}

/// The log's contents at the moment of a commit, with the commits before it in the same group.
struct LogView: Sendable {
    /// The group's change of an item so far.
    enum Pending: Sendable {
        case stored(FrameDraft, generation: UInt64)
        case deleted
    }

    /// An item as a commit finds it.
    struct Found: Sendable {
        var policy: UInt8
        var setTag: UInt64
        var keyVersion: UInt32
        var generation: UInt64
        var serviceTag: UInt64
        var valueTag: UInt64
        fileprivate var place: Place

        fileprivate enum Place: Sendable {
            case file(IndexEntry)
            case pending(FrameDraft)
        }
    }

    /// The generation that the commit gets.
    let generation: UInt64
    // The log itself rather than a copy of its index: a second reference would make the next change of
    // the index copy all of it. Nothing but this commit's group changes it while the lock is held.
    private let log: VaultLog
    private let file: any DiskFile
    private let pending: [ItemIdentifier: Pending]

    init(generation: UInt64, log: VaultLog, file: any DiskFile, pending: [ItemIdentifier: Pending]) {
        self.generation = generation
        self.log = log
        self.file = file
        self.pending = pending
    }

    /// Returns the item, or `nil` when it is absent.
    subscript(item: ItemIdentifier) -> Found? {
        get throws(TokenStorageError) {
            switch pending[item] {
            case .deleted: return nil
            case .stored(let draft, let generation): return Found(draft, generation: generation)
            case nil:
                return try usingIndex { (index) throws(TokenStorageError) in try index.entry(of: item) }
                    .map { Found($0) }
            }
        }
    }

    /// Returns several items, each `nil` when it is absent: one look at the log for all of them.
    func find(_ items: some RandomAccessCollection<ItemIdentifier>) throws(TokenStorageError) -> [Found?] {
        if pending.isEmpty {
            return try usingIndex { (index) throws(TokenStorageError) in
                var found: [Found?] = []
                found.reserveCapacity(items.count)
                for item in items { found.append(try index.entry(of: item).map { Found($0) }) }
                return found
            }
        }
        var found: [Found?] = []
        for item in items { found.append(try self[item]) }
        return found
    }

    private func usingIndex<Value: Sendable>(
        _ body: (inout LogIndex) throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        try log.withLockedState { (state) throws(TokenStorageError) in
            try log.usingIndex(of: &state, body)
        }
    }

    /// Returns every item that `isWanted`.
    func items(
        where isWanted: (Found) -> Bool
    ) throws(TokenStorageError) -> [(ItemIdentifier, Found)] {
        var result = try usingIndex { (index) throws(TokenStorageError) in
            var found: [(ItemIdentifier, Found)] = []
            try index.forEachItem { item, entry in
                let one = Found(entry)
                if pending[item] == nil, isWanted(one) { found.append((item, one)) }
            }
            return found
        }
        for (item, change) in pending {
            if case .stored(let draft, let generation) = change {
                let one = Found(draft, generation: generation)
                if isWanted(one) { result.append((item, one)) }
            }
        }
        return result
    }

    /// Returns the sealed metadata of an item.
    func metadata(of found: Found) throws(TokenStorageError) -> [UInt8] {
        switch found.place {
        case .pending(let draft): return Array(draft.metadata)
        case .file(let entry): return try read(entry.metadataRange)
        }
    }

    /// Returns the sealed body of an item.
    func body(of found: Found) throws(TokenStorageError) -> [UInt8] {
        switch found.place {
        case .pending(let draft): return Array(draft.body)
        case .file(let entry): return try read(entry.bodyRange)
        }
    }

    private func read(_ range: Range<Int>) throws(TokenStorageError) -> [UInt8] {
        try onDisk { () throws(SystemFailure) in try file.read(range.count, at: range.lowerBound) }
    }
}

extension LogView.Found {
    fileprivate init(_ entry: IndexEntry) {
        policy = entry.policy
        setTag = entry.setTag
        keyVersion = entry.keyVersion
        generation = entry.generation
        serviceTag = entry.serviceTag
        valueTag = entry.valueTag
        place = .file(entry)
    }

    fileprivate init(_ draft: FrameDraft, generation: UInt64) {
        policy = draft.policy
        setTag = draft.setTag
        keyVersion = draft.keyVersion
        self.generation = generation
        serviceTag = draft.serviceTag
        valueTag = draft.valueTag
        place = .pending(draft)
    }
}
