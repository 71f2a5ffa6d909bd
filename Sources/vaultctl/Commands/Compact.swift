import ArgumentParser
import ProgramSupport
import TokenVault

struct Compact: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Rewrite the vault without deleted and replaced values.",
            description: """
                The command prints the size before and after. Other programs can go on using the vault. \
                \(UnlockOptions.opensFile)

                With --keep-values, the vault keeps that many replaced values of each item for "vaultctl undo", from 0 to \
                \(BlockingFileVault.mostKeptValues). The number counts for this compaction and for all later ones, on every \
                device. A new vault keeps no replaced values. A replaced value under another policy than that of the item is removed.
                """,
            examples: [
                "vaultctl compact",
                "vaultctl compact --keep-values 3",
                "vaultctl compact --key-file ~/.config/example/vault.key --json",
            ],
            statuses: [
                .refused: "The passphrase or key is wrong, or for --keep-values does not open everything.",
                .conflict:
                    "The vault is at two paths, its file has a second name (a hard link), or another program changed it meanwhile.",
            ],
            standard: .vault))

    @Option(
        help: ArgumentHelp(
            "The number of replaced values to keep for each item, from now on.", valueName: "n"))
    var keepValues: String?
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let kept = try keepValues.map { (text) throws(CommandFailure) in
            try Settings.number(text, named: "--keep-values", 0...BlockingFileVault.mostKeptValues)
        }
        let vault = try session.openUnlockedVault()
        if let kept {
            try calling { () throws(TokenStorageError) in try vault.keepReplacedValues(kept) }
        }
        let report = try calling { () throws(TokenStorageError) in
            try vault.compact { done, total in console.progress.show("Compacting", done, of: total) }
        }
        console.progress.clear()
        console.noteDamagedValues(report.damagedValues)
        if format.json {
            var json = JSONWriter(console.output)
            json.object { json in
                json.member("sizeBefore", report.sizeBefore)
                json.member("sizeAfter", report.sizeAfter)
                if report.damagedValues > 0 { json.member("damagedValues", report.damagedValues) }
            }
            json.end()
        } else {
            console.output.line("\(report.sizeBefore) bytes before, \(report.sizeAfter) after")
        }
        return .done
    }
}

extension Console {
    /// Prints a note that a compaction could not keep `count` replaced values.
    func noteDamagedValues(_ count: Int) {
        guard count > 0 else { return }
        note("\(counted(count, "earlier value")) could not be kept: damaged or tampered with")
    }
}
