internal import Synchronization

/// What an export holds, and what it left behind.
public struct ExportReport: Hashable, Sendable {
    /// Items in the file.
    public var items: Int
    /// Items that may not leave this device, or that another device or another unlock method has the keys of.
    public var staying: Int
}

/// What to do with an item of an export whose key the vault has already, with another value.
public enum ImportConflictRule: String, CaseIterable, Hashable, Sendable {
    /// Import nothing at all.
    case fail
    /// Keep what the vault has.
    case skip
    /// Take what the export has.
    case replace
}

/// What an import did.
public struct ImportReport: Hashable, Sendable {
    /// Items that were not there before.
    public var added = 0
    /// Items that were there with another value, and have the export's now.
    public var replaced = 0
    /// Items that were there with another value, and were kept.
    public var skipped = 0
    /// Items that were there already with the same value and details.
    public var unchanged = 0

    /// A report of nothing.
    public init() {}
}

/// What a commit of an import did, told by the thread that wrote it.
final class ImportOutcome: Sendable {
    private let value = Mutex(ImportReport())
    func set(_ report: ImportReport) { value.withLock { $0 = report } }
    var report: ImportReport { value.withLock { $0 } }
}
