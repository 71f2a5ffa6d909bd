import ArgumentParser
import ProgramSupport
import TokenVault

struct Verify: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Read every byte of the vault and change nothing.",
            description: """
                The output names each damaged place, even of a file that does not open. An incomplete record right after the last \
                one, which a crash leaves, is only a note. \(UnlockOptions.opensFile)

                With --json, the output is an object with clean, olderThanSeen, forked, frames, items, checkedByDigestOnly, bytes, \
                problems and notes. A problem has offset and description.
                """,
            examples: [
                "vaultctl verify",
                "vaultctl verify --key-file ~/.config/example/vault.key --json",
            ],
            statuses: [
                .done: "The file is clean.",
                .damaged:
                    "The file is damaged, older than this device has seen, or lacks changes that this device has seen.",
            ],
            standard: .copy))

    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let (report, opens) = try report(session)
        console.progress.clear()
        if format.json { writeJSON(report, console.output) } else { show(report, console.output) }
        guard let failure = Self.failure(report, opens: opens) else { return .done }
        throw failure
    }

    /// Returns the problems of the vault, and whether anything opens it. A file that does not open as the
    /// vault is checked as a copy.
    private func report(_ session: Session) throws(CommandFailure) -> (VerificationReport, opens: Bool) {
        let console = session.console
        let progress: (Int, Int) -> Void = { done, total in
            console.progress.show("Verifying", done, of: total)
        }
        var method: UnlockMethod?
        do throws(CommandFailure) {
            let vault = try session.openVaultOrCopy()
            let isOpen =
                session.unlock.isTerminal ? try session.unlockFromKeyring(vault, repairing: false) : false
            if !isOpen {
                let slots = try session.slots(of: vault)
                try session.unlock.withUnlockMethod(console, opening: slots) {
                    (given) throws(CommandFailure) in
                    method = given
                    try session.unlock(vault, with: given, repairing: false)
                }
            }
            for note in vault.unlockWarnings { console.note(note) }
            return (
                try calling { () throws(TokenStorageError) in try vault.verify(progress: progress) }, true
            )
        } catch {
            guard error.status == .damaged, let cause = error.cause, cause.code != .unexpectedVault else {
                throw error
            }
            let (path, known) = (try session.vaultPath, method)
            do throws(CommandFailure) {
                let copy = try session.openUnlockedCopy(at: path, with: known)
                defer { copy.close() }
                return (
                    try calling { () throws(TokenStorageError) in try copy.verify(progress: progress) }, true
                )
            } catch {
                // The report contains only the reason that the vault did not open.
                return (VerificationReport(of: cause), false)
            }
        }
    }

    /// Returns the one-line failure for a damaged vault; `nil` for a clean vault.
    private static func failure(_ report: VerificationReport, opens: Bool) -> CommandFailure? {
        let places = report.problems.count == 1 ? "one place" : "\(report.problems.count) places"
        let damage = report.problems.first.map { "damaged in \(places), the first at byte \($0.offset)" }
        let age =
            report.isOlderThanSeen
            ? "older than the one this device has seen"
            : report.isForked ? "without changes that this device has seen" : nil
        let found = [age, damage].compactMap(\.self)
        if found.isEmpty { return nil }
        let advice =
            switch (age, damage, opens) {
            case (nil, _, true) where report.problems.count == 1 && report.problems[0].isMendedByUse:
                "the next command that changes the vault repairs it"
            case (_, _, false): "\"vaultctl restore\" puts a backup in its place"
            case (nil, _, true):
                "\"vaultctl salvage\" copies out the intact data; \"vaultctl restore\" puts a backup in its place"
            case (_, nil, true) where report.isForked:
                CommandFailure.advice(for: .forked) ?? ""
            case (_, nil, true): CommandFailure.advice(for: .rolledBack) ?? ""
            case (_, _, true):
                "put the newest copy back; if this is all there is, \"vaultctl salvage\" copies out the intact data"
            }
        return CommandFailure(.damaged, "the vault is \(found.joined(separator: ", and "))", advice)
    }

    private func writeJSON(_ report: VerificationReport, _ output: Output) {
        var json = JSONWriter(output)
        json.object { json in
            json.member("clean", report.isClean && !report.isOlderThanSeen && !report.isForked)
            json.member("olderThanSeen", report.isOlderThanSeen)
            json.member("forked", report.isForked)
            json.member("frames", report.frames)
            json.member("items", report.items)
            json.member("checkedByDigestOnly", report.checkedByDigestOnly)
            json.member("bytes", report.bytes)
            json.array("problems") { json in
                for problem in report.problems {
                    json.object { json in
                        json.member("offset", problem.offset)
                        json.member("description", problem.description)
                    }
                }
            }
            json.array("notes") { json in
                for note in report.notes { json.element(note) }
            }
        }
        json.end()
    }

    private func show(_ report: VerificationReport, _ output: Output) {
        for problem in report.problems {
            output.line(CommandFailure.printable("byte \(problem.offset): \(problem.description)"))
        }
        for note in report.notes { output.line(CommandFailure.printable("note: \(note)")) }
        if report.checkedByDigestOnly > 0 {
            output.line(
                Self.count(report.checkedByDigestOnly, "item")
                    + " could be checked only by digest, without the keys")
        }
        if report.isOlderThanSeen { output.line("older than the vault that this device has seen") }
        if report.isForked { output.line("without changes that this device has seen") }
        if report.isClean, !report.isOlderThanSeen, !report.isForked {
            let (items, frames) = (Self.count(report.items, "item"), Self.count(report.frames, "frame"))
            output.line("clean: \(items), \(frames), \(report.bytes) bytes")
        }
    }

    private static func count(_ number: Int, _ what: String) -> String {
        number == 1 ? "1 \(what)" : "\(number) \(what)s"
    }
}

extension VerificationReport.Problem {
    /// Whether a program that uses the vault repairs the part, where nothing else is damaged. Such a part is one of the
    /// two copies of the keybag, or bytes behind the log.
    fileprivate var isMendedByUse: Bool {
        [.keybagCopy, .otherKeybagCopy, .bytesAmongZeros].contains(part)
    }
}
