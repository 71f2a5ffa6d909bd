/// How far a migration has come.
public struct MigrationProgress: Hashable, Sendable {
    /// Items that were dealt with, moved or not.
    public var done: Int
    /// Items in all.
    public var total: Int
}

/// What a migration did, and what it left where it was. It holds no secret; its description no key either.
public struct MigrationSummary: Sendable {
    /// An item that stayed at the source alone.
    public struct Remaining: Hashable, Sendable {
        /// The item's service at the source.
        public let service: String
        /// The item's key.
        public let key: TokenKey
        /// Why: `conflict` (something else is at the destination), `unsupportedPolicy`, `locked`,
        /// `wrongDevice` or `notPermitted` (it could not be read), or what else one of the two
        /// storages refused it with.
        public let code: TokenStorageError.Code
    }

    /// Items that were looked at.
    public internal(set) var found = 0
    /// Items that this run stored at the destination.
    public internal(set) var copied = 0
    /// Items that were at the destination already, with the same secret and details.
    public internal(set) var alreadyThere = 0
    /// Items that were read at the destination and are what the source has: copied or already there.
    public internal(set) var verified = 0
    /// Items that were deleted at the source.
    public internal(set) var deleted = 0
    /// Items that somebody else deleted at the source when they had been copied: another run of the same
    /// migration, or a sign-out. Their copies are kept.
    public internal(set) var deletedMeanwhile = 0
    /// Chosen keys, or listed ones by the time of their turn, that the source has not.
    public internal(set) var absent = 0
    /// Items that the source does not even list, because they are locked, another device's, or not opened by what
    /// unlocked it.
    public internal(set) var hidden = 0
    /// Why, as far as the source tells: see ``TokenListing/hiddenReasons``.
    public internal(set) var hiddenReasons: [TokenStorageError.Code: Int] = [:]
    /// Items that were read at the destination and stay at the source too, since another program made them.
    public internal(set) var keptForOthers = 0
    /// Items of other programs that the source has and that were not copied: see ``TokenListing/passedOver``. The
    /// destination may have something else under the key.
    public internal(set) var passedOver = 0
    /// Each item that stayed at the source alone, and why.
    public internal(set) var remaining: [Remaining] = []
    /// What ended the migration before its end; `nil` when all items were dealt with.
    public internal(set) var stop: MigrationStop?

    /// Items left because something else is at the destination.
    public var conflicts: Int { count(.conflict) }
    /// Items left because the destination cannot keep their policy's promise.
    public var unsupportedPolicies: Int { count(.unsupportedPolicy) }
    /// Items left because they cannot be read now; with those that are not even listed.
    public var unreadable: Int { hidden + remaining.count { $0.code.isUnreadable } }
    /// Items left for another reason.
    public var failed: Int { remaining.count + hidden - conflicts - unsupportedPolicies - unreadable }

    /// Whether every item that the source has is at the destination.
    public var isComplete: Bool { stop == nil && remaining.isEmpty && hidden == 0 }

    private func count(_ code: TokenStorageError.Code) -> Int { remaining.count { $0.code == code } }
}

extension MigrationSummary: CustomStringConvertible {
    /// The figures, and what stopped it, in one line.
    public var description: String { figures + (stop.map { ", stopped: \($0)" } ?? "") }

    /// The figures, in one line.
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
    /// Why, without the key.
    public var description: String { code.summary }
}

/// Why a migration ended before its end.
public struct MigrationStop: Error, Equatable, Sendable {
    /// Which of the two storages it was.
    public enum Side: String, Hashable, Sendable {
        /// Where items come from.
        case source
        /// Where items go to.
        case destination
    }

    /// What it failed with; `cancelled` when the task was, `conflict` under ``TokenMigration/ConflictRule/fail``,
    /// `corrupt` when the destination did not give back what was stored, `invalidArgument` when both are the
    /// same storage.
    public let error: TokenStorageError
    /// Which of the two storages.
    public let side: Side

    init(_ error: TokenStorageError, at side: Side) {
        self.error = error
        self.side = side
    }

    /// The error with `code` of a migration itself.
    init(_ code: TokenStorageError.Code, at side: Side, _ reason: TokenStorageError.Reason) {
        self.init(
            TokenStorageError(code, operation: "migrate", backend: side.rawValue, reason: reason), at: side)
    }
}

extension MigrationStop: CustomStringConvertible {
    /// One line: which side, what happened, and what to do.
    public var description: String { "\(side.rawValue): \(error)" }
}

extension TokenStorageError.Code {
    /// Whether an item cannot be read now and is whole.
    var isUnreadable: Bool { self == .locked || self == .wrongDevice || self == .notPermitted }
}
