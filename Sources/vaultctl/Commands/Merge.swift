import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault

struct Merge: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Take the changes of a copy into the vault.",
            description: """
                The copy is another file of the same vault, such as one from a program that synchronises folders. Both files may have changes. An item that changed in only one of the two files comes from that file, even if the change is a deletion.

                If both files have changed an item, the vault's value keeps the key. The copy's value is stored as "KEY (conflict \
                NUMBER)" and listed. Delete the key with the value that you do not want; the number only makes the key unique. Policies \
                stay. The unlock methods are those of the vault. Earlier values ("vaultctl history") are not taken over.

                The vault's unlock method has to open the copy too. Otherwise give the copy's own with --copy-passphrase-file or \
                --copy-key-file, or answer the prompt. \(UnlockOptions.opensFile)

                Items that this device cannot read stay in the copy and are counted. Keep the copy, and merge it on the device that \
                stored these items, with a passphrase if their policy needs one. A device that was removed in the copy is removed here, with its items. The device stays if \
                items would be lost that the copy never had, and a note says so.

                The output lists each item that is taken or deleted. The previous file is kept beside the vault under a name that is \
                printed. With --dry-run, nothing is written, and the output is the same.

                With --json, the output is an object with dryRun, upToDate, items, taken, deleted, left, takenItems, deletedItems, \
                conflicts, replaced and notes. A conflict has service, key, keptAs and vaultsValueMoved.
                """,
            examples: [
                "vaultctl merge 'default.sync-conflict-20260101-120000.vault' --dry-run",
                "vaultctl merge 'default.sync-conflict-20260101-120000.vault'",
            ],
            statuses: [
                .refused: "A passphrase or key is wrong, or does not open everything.",
                .damaged:
                    "A file is damaged, the copy is of another vault, or neither file has all that this device has seen.",
                .unavailable: "The vault or the copy is not available, or is not a vault.",
                .conflict:
                    "The copy's keys, slots or devices prevent a merge, the vault's file has a second name, or a file was changed meanwhile.",
            ],
            standard: .vault))

    @Argument(help: "The copy to take changes from, which is only read.", completion: .file()) var file:
        String
    @Flag(help: "Print what would be done, and write nothing.") var dryRun = false
    @Option(
        help: ArgumentHelp(
            "The file whose first line is a passphrase or recovery key of the copy, if that of the vault does not open the copy.",
            valueName: "path"), completion: .file())
    var copyPassphraseFile: String?
    @Option(
        help: ArgumentHelp(
            "A key file of the copy, if that of the vault does not open the copy.", valueName: "path"),
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
                "to settle a conflict, delete the key of the unwanted value, then give the other value the item's key with "
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
