import ArgumentParser
import TokenVault

struct Verify: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Read every byte of the vault and change nothing.",
        discussion: """
            Exit status 7, and where, for anything but a clean file. A torn record right after the last \
            one, which a crash leaves, is a note.

            Examples:
              vaultctl verify
              vaultctl verify --key-file ~/.config/example/vault.key --json
            """)

    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let vault = try session.openUnlockedVault(mending: false, orCopy: true)
        let report = try calling { () throws(TokenStorageError) in
            try vault.verify { done, total in console.progress.show("Verifying", done, of: total) }
        }
        console.progress.clear()
        if format.json { writeJSON(report, console.output) } else { show(report, console.output) }
        guard let first = report.problems.first else { return .done }
        let places = report.problems.count == 1 ? "one place" : "\(report.problems.count) places"
        throw CommandFailure(
            .damaged, "the vault is damaged in \(places), the first at byte \(first.offset)",
            "\"vaultctl salvage\" copies out what is whole; \"vaultctl restore\" puts a backup in its place")
    }

    private func writeJSON(_ report: VerificationReport, _ output: Output) {
        var json = JSONWriter(output)
        json.object { json in
            json.member("clean", report.isClean)
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
            output.line("byte \(problem.offset): \(problem.description)")
        }
        for note in report.notes { output.line("note: \(note)") }
        if report.checkedByDigestOnly > 0 {
            output.line(
                Self.count(report.checkedByDigestOnly, "item")
                    + " could only be checked by digest, the keys not being held")
        }
        if report.isClean {
            let (items, frames) = (Self.count(report.items, "item"), Self.count(report.frames, "frame"))
            output.line("clean: \(items), \(frames), \(report.bytes) bytes")
        }
    }

    private static func count(_ number: Int, _ what: String) -> String {
        number == 1 ? "1 \(what)" : "\(number) \(what)s"
    }
}
