import ProgramSupport
import TokenVault

/// The report of `migrate`.
struct MigrationReport {
    let summary: MigrationSummary
    let conflicts: TokenMigration.ConflictRule

    func writeJSON(_ output: Output) {
        var json = JSONWriter(output)
        json.object { json in
            json.member("found", summary.found)
            json.member("copied", summary.copied)
            json.member("alreadyThere", summary.alreadyThere)
            json.member("verified", summary.verified)
            json.member("deleted", summary.deleted)
            json.member("deletedMeanwhile", summary.deletedMeanwhile)
            json.member("absent", summary.absent)
            json.member("hidden", summary.hidden)
            json.member("keptForOthers", summary.keptForOthers)
            json.member("passedOver", summary.passedOver)
            json.array("left") { json in
                for item in summary.remaining {
                    json.object { json in
                        json.member("service", item.service)
                        json.member("key", item.key.name)
                        json.member("reason", item.code.rawValue)
                    }
                }
            }
            json.member("stopped", summary.stop?.error.code.rawValue)
            json.member("stoppedAt", summary.stop?.side.rawValue)
        }
        json.end()
    }

    /// Prints the remaining items, one a line, then the figures.
    func show(_ output: Output) {
        // The migration did not begin, and figures would look like an empty source.
        if summary.stop != nil, summary.found == 0, summary.absent == 0 { return }
        for item in summary.remaining {
            let place = [item.service, item.key.name].map(PrintedName.screen).joined(separator: "\t")
            output.line("\(place)\t\(Self.reason(item.code))")
        }
        output.line(summary.figures)
    }

    /// Throws unless every requested item is at the destination.
    func check(isTimedOut: Bool) throws(CommandFailure) {
        if let stop = summary.stop { throw failure(of: stop, isTimedOut: isTimedOut) }
        if let first = summary.remaining.first(where: { Self.isFailure($0.code) }) {
            throw CommandFailure(
                ExitStatus(first.code), "\(Self.items(summary.failed)) could not be moved",
                "see the reasons; these items stay in the source")
        }
        if conflicts == .replace, summary.conflicts > 0 {
            throw CommandFailure(
                .conflict, "\(Self.items(summary.conflicts)) changed meanwhile and stayed", "run it again")
        }
        if summary.unreadable > 0 {
            throw CommandFailure(
                isOthers ? (isNotPermitted ? .refused : .wrongDevice) : .locked,
                "\(Self.items(summary.unreadable)) could not be read and stayed",
                "unlock the source with a passphrase, on the device that stored them")
        }
        if summary.unsupportedPolicies > 0 {
            throw CommandFailure(
                ExitStatus(.unsupportedPolicy),
                "\(Self.items(summary.unsupportedPolicies)) stayed: the destination does not support their policy",
                "choose another policy with --map-policy")
        }
    }

    /// Whether every unlisted item is out of reach of the unlock method.
    private var isNotPermitted: Bool {
        let reasons = summary.hiddenReasons
        return reasons[.notPermitted] != nil && reasons[.wrongDevice] == nil
            && !summary.remaining.contains { $0.code == .wrongDevice }
    }

    /// Whether the unlisted items belong to another device or are out of the unlock method's reach, because
    /// the vaults are unlocked.
    private var isOthers: Bool {
        summary.hiddenReasons[.locked] == nil
            && !summary.remaining.contains { $0.code == .locked || $0.code == .notPermitted }
    }

    private func failure(of stop: MigrationStop, isTimedOut: Bool) -> CommandFailure {
        if stop.error.code == .cancelled, isTimedOut {
            return CommandFailure(
                .timedOut, "timed out before all items were moved", "run it again to continue")
        }
        if stop.error.code == .conflict, !summary.remaining.isEmpty {
            return CommandFailure(
                .conflict, "\(Self.items(summary.conflicts)) would replace another item",
                "choose with --on-conflict skip or replace")
        }
        var failure = CommandFailure(stop.error)
        failure.happened = "the \(stop.side.rawValue): \(failure.happened)"
        return failure
    }

    private static func isFailure(_ code: TokenStorageError.Code) -> Bool {
        switch code {
        case .conflict, .unsupportedPolicy, .locked, .wrongDevice, .notPermitted: false
        default: true
        }
    }

    private static func reason(_ code: TokenStorageError.Code) -> String {
        switch code {
        case .conflict: "the destination has another item"
        case .unsupportedPolicy: "the destination does not support its policy"
        default: code.summary
        }
    }

    private static func items(_ count: Int) -> String { count == 1 ? "1 item" : "\(count) items" }
}
