import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

struct Salvage: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Copy the intact data of a damaged vault into a new vault.",
            description: """
                The damaged vault, which --vault names, is not changed. The new vault has the same slots. "vaultctl restore" puts \
                the new vault in the place of the damaged one.

                What was lost may include a newer value of an item, or the item's deletion. The command counts the items for which \
                that is possible. The secrets of these items may be outdated or revoked.

                The unlock method has to open everything, as a passphrase does. \(UnlockOptions.opensFile)

                With --json, the output is an object with items, mayBeOlder, itemsLost, bytesSkipped, isOlderThanSeen, losses and \
                notes.
                """,
            examples: [
                "vaultctl salvage saved.vault",
                "vaultctl verify --vault saved.vault",
                "vaultctl restore saved.vault",
            ],
            statuses: [
                .done: "Nothing was lost.",
                .refused: "The passphrase or key is wrong, or does not open everything.",
                .damaged:
                    "Something was lost, and the rest was saved. Or the vault is an older copy than this device has seen: its items and unlock methods may be old. Or the vault does not open.",
                .unavailable: "The vault, the keyring or the directory of the new vault is not available.",
                .conflict: "The file of the new vault exists already.",
            ],
            standard: .copy))

    @Argument(help: "The file of the new vault. An existing file is never overwritten.", completion: .file())
    var out: String
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        try session.requireFile()
        guard !out.isEmpty else { throw .usage("the new vault's path is empty", "give the path of a file") }
        let place = try Settings.path(out, named: "the new vault")
        try OutputPlace.requireFree(place)
        let copy = try session.openUnlockedCopy(at: try session.vaultPath)
        let report = try calling { () throws(TokenStorageError) in
            try copy.salvage(to: place) { done, total in
                console.progress.show("Salvaging", done, of: total)
            }
        }
        console.progress.clear()
        if format.json { Self.writeJSON(report, console.output) } else { Self.show(report, console) }
        if report.losses.isEmpty, report.isOlderThanSeen {
            throw CommandFailure(
                .damaged,
                "saved \(counted(report.items, "item")) of a copy that lacks changes that this device has seen",
                "find a newer copy, or run \"vaultctl restore\" with the new vault to accept the loss")
        }
        guard let first = report.losses.first else { return .done }
        guard report.items > 0 else {
            throw CommandFailure(
                .damaged, "nothing could be saved: the loss begins at byte \(first.offset)",
                "the new vault is empty: remove it, and restore a backup with \"vaultctl restore\"")
        }
        let places = report.losses.count == 1 ? "one place" : "\(report.losses.count) places"
        throw CommandFailure(
            .damaged,
            "saved \(counted(report.items, "item")), but something was lost in \(places), the first at byte \(first.offset)",
            "check the saved items, then run \"vaultctl restore\" with the new vault; or restore a backup")
    }

    private static func show(_ report: SalvageReport, _ console: Console) {
        let output = console.output
        for loss in report.losses {
            let length = loss.length > 0 ? " (\(loss.length) bytes)" : ""
            output.line(CommandFailure.printable("byte \(loss.offset): \(loss.description)\(length)"))
        }
        for note in report.notes { output.line(CommandFailure.printable("note: \(note)")) }
        output.line("saved: \(counted(report.items, "item"))")
        if report.mayBeOlder > 0 {
            output.line("of these, \(report.mayBeOlder) may be older values or deleted items")
        }
        if report.itemsLost > 0 {
            output.line("lost: \(counted(report.itemsLost, "item")) that left a trace")
            console.note(
                "if only an item's name is damaged, \"vaultctl retrieve KEY\" may still print it from the damaged file: "
                    + "try the keys that are missing")
        }
        if report.bytesSkipped > 0 { output.line("skipped: \(report.bytesSkipped) bytes") }
    }

    private static func writeJSON(_ report: SalvageReport, _ output: Output) {
        var json = JSONWriter(output)
        json.object { json in
            json.member("items", report.items)
            json.member("mayBeOlder", report.mayBeOlder)
            json.member("itemsLost", report.itemsLost)
            json.member("bytesSkipped", report.bytesSkipped)
            json.member("isOlderThanSeen", report.isOlderThanSeen)
            json.array("losses") { json in
                for loss in report.losses {
                    json.object { json in
                        json.member("offset", loss.offset)
                        json.member("length", loss.length)
                        json.member("description", loss.description)
                    }
                }
            }
            json.array("notes") { json in
                for note in report.notes { json.element(note) }
            }
        }
        json.end()
    }
}
