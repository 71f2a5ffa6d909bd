internal import Synchronization

/// The result of an export.
public struct ExportReport: Hashable, Sendable {
    /// The number of items in the file.
    public var items: Int
    /// The number of items that stayed: they may not leave this device, or another device or unlock method
    /// has their keys.
    public var staying: Int
}

/// The rule for an item of an export whose key has another value in the vault already.
public enum ImportConflictRule: String, CaseIterable, Hashable, Sendable {
    /// Import nothing at all.
    case fail
    /// Keep the vault's value.
    case skip
    /// Take the export's value.
    case replace
}

/// The result of an import.
public struct ImportReport: Hashable, Sendable {
    /// The number of items that were not there before.
    public var added = 0
    /// The number of items that had another value, and have the export's now.
    public var replaced = 0
    /// The number of items that had another value, and were kept.
    public var skipped = 0
    /// The number of items that were there already with the same value and details.
    public var unchanged = 0

    /// Creates an empty report.
    public init() {}
}

/// The outcome of an import's commit, set by the thread that wrote it.
final class ImportOutcome: Sendable {
    private let value = Mutex(ImportReport())
    func set(_ report: ImportReport) { value.withLock { $0 = report } }
    var report: ImportReport { value.withLock { $0 } }
}
