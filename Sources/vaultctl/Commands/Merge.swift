import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault

struct Merge: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Take what a copy has into the vault.",
        discussion: """
            For a copy that was written to while the vault was, as a program that synchronises folders leaves it. What only \
            one of the two has changed since they parted is taken from that one, a deletion too. What both have changed \
            keeps the vault's value; the copy's value is stored as "KEY (conflict NUMBER)" and listed: delete the \
            one that you do not want. A value that only another device opens may stay in the copy, and is counted. The \
            unlock methods are the vault's. What opens the vault has to open the copy too, or the copy's own is given. The \
            previous file is kept. Earlier values of items ("vaultctl history") are not taken over. \
            \(UnlockOptions.opensFile)

            With --dry-run nothing is written, and the output is the same.

            Examples:
              vaultctl merge 'default.sync-conflict-20260101-120000.vault' --dry-run
              vaultctl merge 'default.sync-conflict-20260101-120000.vault'
            """)

    @Argument(help: "The copy to take from. It is only read.", completion: .file()) var file: String
    @Flag(help: "Say what would be done, and write nothing.") var dryRun = false
    @Option(
        help: ArgumentHelp(
            "A file whose first line is a passphrase or recovery key of the copy, if the vault's does not open it.",
            valueName: "path"), completion: .file())
    var copyPassphraseFile: String?
    @Option(
        help: ArgumentHelp("A key file of the copy, if the vault's does not open it.", valueName: "path"),
        completion: .file())
    var copyKeyFile: String?
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        try session.requireFile()
        if !dryRun { try session.requireWriting() }
        guard !file.isEmpty else { throw .usage("the copy's path is empty", "give the path of a file") }
        let (vault, copy) = try session.openUnlockedCopies(
            try session.vaultPath, try Settings.path(file, named: "the copy"), try copyMethod(console))
        defer {
            vault.close()
            copy.close()
        }
        let isRehearsal = dryRun
        let report = try calling { () throws(TokenStorageError) in
            try vault.merge(copy, isRehearsal: isRehearsal) { done, total in
                console.progress.show("Merging", done, of: total)
            }
        }
        console.progress.clear()
        if report.replaced != nil { session.releaseFromAgent(after: "merged") }
        for note in report.notes { console.note(note) }
        if let replaced = report.replaced {
            console.note("the previous file is kept as \(replaced.string)")
        }
        if !report.conflicts.isEmpty, !dryRun {
            console.note(
                "to settle a conflict, delete the key with the unwanted value, then give the other the item's key with "
                    + "\"vaultctl rename\"")
        }
        let nameless =
            report.taken + report.deleted - report.takenNames.count - report.deletedNames.count
        if nameless > 0 {
            console.note("\(counted(nameless, "item")) taken or deleted can be read only by other devices")
        }
        if report.remaining > 0 {
            console.note(
                "\(counted(report.remaining, "item")) stayed in the copy. Keep the copy, and merge it into this vault on the device that stored them, with a passphrase if "
                    + "their policy needs one"
            )
        }
        if format.json { writeJSON(report, console.output) } else { show(report, console.output) }
        return .done
    }

    /// The copy's own unlock method, if an option names it.
    private func copyMethod(_ console: Console) throws(CommandFailure) -> UnlockMethod? {
        let passphrase = try Settings.path(
            copyPassphraseFile, named: "--copy-passphrase-file", environment: nil)
        let key = try Settings.path(copyKeyFile, named: "--copy-key-file", environment: nil)
        switch (passphrase, key) {
        case (nil, nil): return nil
        case (let path?, nil): return .passphrase(try UnlockSource.readPassphraseFile(path, console))
        case (nil, let path?): return .keyFile(try KeyFile.read(path, console))
        case (.some, .some):
            throw .usage(
                "two unlock methods were given for the copy",
                "give one of --copy-passphrase-file and --copy-key-file")
        }
    }

    private func show(_ report: MergeReport, _ output: Output) {
        if report.isUpToDate {
            let part =
                report.remaining > 0 ? "everything in the copy that this device can open" : "all of the copy"
            return output.line("the vault already has \(part)")
        }
        for (word, names) in [("taken", report.takenNames), ("deleted", report.deletedNames)] {
            for name in names {
                output.line(PrintedName.screen("\(word): \(name.service): \(name.key.name)"))
            }
        }
        for conflict in report.conflicts {
            let (service, key, other) = (conflict.service, conflict.key.name, conflict.keptAs.name)
            let moved =
                conflict.isVaultsValueMoved
                ? "another device's value has the key, and the vault's value is" : "the copy's value is"
            output.line(PrintedName.screen("conflict: \(service): \(key): \(moved) \(other)"))
        }
        output.line(
            "taken: \(report.taken), deleted: \(report.deleted), conflicts: \(report.conflicts.count), "
                + "left: \(report.remaining), items: \(report.items)")
    }

    private func writeJSON(_ report: MergeReport, _ output: Output) {
        var json = JSONWriter(output)
        json.object { json in
            json.member("dryRun", dryRun)
            json.member("upToDate", report.isUpToDate)
            json.member("items", report.items)
            json.member("taken", report.taken)
            json.member("deleted", report.deleted)
            json.member("left", report.remaining)
            for (member, names) in [("takenItems", report.takenNames), ("deletedItems", report.deletedNames)]
            {
                json.array(member) { json in
                    for name in names {
                        json.object { json in
                            json.member("service", name.service)
                            json.member("key", name.key.name)
                        }
                    }
                }
            }
            json.array("conflicts") { json in
                for conflict in report.conflicts {
                    json.object { json in
                        json.member("service", conflict.service)
                        json.member("key", conflict.key.name)
                        json.member("keptAs", conflict.keptAs.name)
                        json.member("vaultsValueMoved", conflict.isVaultsValueMoved)
                    }
                }
            }
            json.member("replaced", report.replaced?.string)
            json.array("notes") { json in
                for note in report.notes { json.element(note) }
            }
        }
        json.end()
    }
}
