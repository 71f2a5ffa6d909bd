/// The progress of a migration.
public struct MigrationProgress: Hashable, Sendable {
    /// The number of items that are done, moved or not.
    public var done: Int
    /// The number of all items.
    public var total: Int
}

/// The result of a migration: the items that were moved, and the items left at the source. The summary holds
/// no secret, and its description no key.
public struct MigrationSummary: Sendable {
    /// An item that remained only at the source.
    public struct Remaining: Hashable, Sendable {
        /// The item's service at the source.
        public let service: String
        /// The item's key.
        public let key: TokenKey
        /// The reason: `conflict` (a different item is at the destination), `unsupportedPolicy`, or the error
        /// of one of the two storages. `locked`, `wrongDevice` and `notPermitted` mean that the item could
        /// not be read.
        public let code: TokenStorageError.Code
    }

    /// The number of items that were examined.
    public internal(set) var found = 0
    /// The number of items that this run stored at the destination.
    public internal(set) var copied = 0
    /// The number of items that were at the destination already, with the same secret and details.
    public internal(set) var alreadyThere = 0
    /// The number of items that were read at the destination and match the source: copied or already there.
    public internal(set) var verified = 0
    /// The number of items that were deleted at the source.
    public internal(set) var deleted = 0
    /// The number of items that another program deleted at the source after they had been copied: another run
    /// of the same migration, or a sign-out. Their copies are kept.
    public internal(set) var deletedMeanwhile = 0
    /// The number of chosen or listed keys that were missing at the source when their turn came.
    public internal(set) var absent = 0
    /// The number of items that the source does not list. They are locked, belong to another device, or are
    /// not opened by the source's unlock method.
    public internal(set) var hidden = 0
    /// The number of hidden items by error, as far as the source reports it: see
    /// ``TokenListing/hiddenReasons``.
    public internal(set) var hiddenReasons: [TokenStorageError.Code: Int] = [:]
    /// The number of items that were verified at the destination and stay at the source too, because another
    /// program made them.
    public internal(set) var keptForOthers = 0
    /// The number of items of other programs at the source that were not copied: see
    /// ``TokenListing/passedOver``. The destination may have a different item under the key.
    public internal(set) var passedOver = 0
    /// Each item that remained only at the source, with the reason.
    public internal(set) var remaining: [Remaining] = []
    /// The error that ended the migration early; `nil` when all items were done.
    public internal(set) var stop: MigrationStop?

    /// The number of items left because a different item is at the destination.
    public var conflicts: Int { count(.conflict) }
    /// The number of items left because the destination cannot enforce their policy.
    public var unsupportedPolicies: Int { count(.unsupportedPolicy) }
    /// The number of items left because they cannot be read now, including hidden ones.
    public var unreadable: Int { hidden + remaining.count { $0.code.isUnreadable } }
    /// The number of items left for another reason.
    public var failed: Int { remaining.count + hidden - conflicts - unsupportedPolicies - unreadable }

    /// Whether every item of the source is at the destination.
    public var isComplete: Bool { stop == nil && remaining.isEmpty && hidden == 0 }

    private func count(_ code: TokenStorageError.Code) -> Int { remaining.count { $0.code == code } }
}

extension MigrationSummary: CustomStringConvertible {
    /// The counts, and the error that ended the migration, in one line.
    public var description: String { figures + (stop.map { ", stopped: \($0)" } ?? "") }

    /// The counts, in one line.
    package var figures: String {
        var parts = ["\(found) found", "\(copied) copied", "\(alreadyThere) already there"]
        parts += ["\(verified) verified", "\(deleted) deleted"]
        for (number, what) in [
            (deletedMeanwhile, "deleted by others"), (absent, "absent"), (conflicts, "in conflict"),
            (unsupportedPolicies, "with an unsupported policy"), (unreadable, "not readable"),
            (failed, "failed"), (keptForOthers, "kept for other programs"), (passedOver, "passed over"),
        ] where number > 0 {
            parts.append("\(number) \(what)")
        }
        return parts.joined(separator: ", ")
    }
}

extension MigrationSummary.Remaining: CustomStringConvertible {
    /// The reason, without the key.
    public var description: String { code.summary }
}

/// The error that ended a migration early.
public struct MigrationStop: Error, Equatable, Sendable {
    /// One of the two storages.
    public enum Side: String, Hashable, Sendable {
        /// The storage from which items are moved.
        case source
        /// The storage to which items are moved.
        case destination
    }

    /// The error. Besides errors of the storages:
    /// - `cancelled` when the task was cancelled;
    /// - `conflict` under ``TokenMigration/ConflictRule/fail``;
    /// - `corrupt` when the destination did not return the stored item;
    /// - `invalidArgument` when both are the same storage.
    public let error: TokenStorageError
    /// The storage that failed.
    public let side: Side

    init(_ error: TokenStorageError, at side: Side) {
        self.error = error
        self.side = side
    }

    /// Creates an error of the migration itself.
    init(_ code: TokenStorageError.Code, at side: Side, _ reason: TokenStorageError.Reason) {
        self.init(
            TokenStorageError(code, operation: "migrate", backend: side.rawValue, reason: reason), at: side)
    }
}

extension MigrationStop: CustomStringConvertible {
    /// One line: the side, the error, and the remedy.
    public var description: String { "\(side.rawValue): \(error)" }
}

extension TokenStorageError.Code {
    /// Whether the item cannot be read now but is undamaged.
    var isUnreadable: Bool { self == .locked || self == .wrongDevice || self == .notPermitted }
}
