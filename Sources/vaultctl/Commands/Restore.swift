import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

struct Restore: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Put a copy in the vault's place, on purpose.",
            description: """
                The copy is a backup, or the output of "vaultctl salvage". The vault that the copy replaces may be damaged, or older than this device has seen. The command prompts before it replaces a file, unless --yes is given.

                The vault loses all changes since the copy was made. The unlock methods and devices are those of the copy: a \
                passphrase that was removed since then opens the vault again. The previous file is kept beside the vault under a \
                name that is printed, unless it equals the copy.

                The command checks the copy to the last byte, and opens the copy with one of the copy's own unlock methods. \
                Programs that have the vault open go on with the restored vault. The agent releases the vault, until "vaultctl \
                unlock". \(UnlockOptions.opensFile)

                With --json, the output is an object with items, replaced, staleCopy and notes.
                """,
            examples: [
                "vaultctl restore /media/backup/default.vault",
                "vaultctl restore old.vault --vault team.vault --key-file team.key --yes",
            ],
            statuses: [
                .refused:
                    "The passphrase or key is wrong or does not open everything, or the restore was not confirmed.",
                .damaged: "The copy is damaged, or this device expects another vault at the path.",
                .unavailable:
                    "The copy is missing or is not a vault, or the file at the vault's path is not a vault.",
                .conflict:
                    "Another vault is at the path, this vault is at another path too, or its file has a second name (a hard link).",
            ],
            standard: .copy))

    @Argument(help: "The copy to put in the vault's place.", completion: .file()) var file: String
    @Flag(help: "Do not prompt for a confirmation.") var yes = false
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        try session.requireFile()
        try session.requireWriting()
        guard !file.isEmpty else { throw .usage("the copy's path is empty", "give the path of a file") }
        let place = try session.vaultPath
        let exists: Bool
        do { exists = try SmallFile.exists(place) } catch {
            throw .closedDirectory(of: place, error)
        }
        let copy = try session.openUnlockedCopy(at: try Settings.path(file, named: "the copy"))
        let found = exists ? try? copy.verify() : nil
        let lacksSeen = found.map { $0.isOlderThanSeen || $0.isForked } ?? false
        let loss = Self.loss(isKept: copy.path != place)
        let asks = exists && !yes
        // The user must know the loss before confirming.
        if lacksSeen, asks, console.canAsk { console.note(loss) }
        if asks { try console.confirm("Put the copy in the place of \(place.string)?") }
        let report = try calling { () throws(TokenStorageError) in
            try copy.restore(to: place) { done, total in
                console.progress.show("Restoring", done, of: total)
            }
        }
        console.progress.clear()
        session.releaseFromAgent(after: "restored")
        if lacksSeen, !asks { console.note(Self.loss(isKept: report.replaced != nil)) }
        report.tell("Restored", console, json: format.json)
        return .done
    }

    /// The note that changes are lost from view, which this device has seen.
    private static func loss(isKept: Bool) -> String {
        "the copy lacks changes that this device has seen: "
            + (isKept
                ? "they stay in the previous file, which is kept"
                : "if another copy has them, \"vaultctl merge\" takes them from it")
    }
}

struct Adopt: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Settle which file is the vault when there are two.",
            description: """
                From now on, the file at the path of --vault is the vault. The other file stays unchanged, as a copy: \
                "vaultctl export" and "vaultctl verify" still read it. A program that still has the other file open stores nothing \
                there, and ends with exit status 9.

                The command also accepts a file that this device refuses, because the file lacks changes that this device has seen, or is another vault. Changes that only the other file has are then not in the vault. "vaultctl merge" takes these changes.

                The command prompts first, unless --yes is given. \(UnlockOptions.opensFile)

                With --json, the output is an object with items, replaced, staleCopy and notes.
                """,
            examples: [
                "vaultctl adopt",
                "vaultctl adopt --vault /media/stick/default.vault --yes",
            ],
            statuses: [
                .refused:
                    "The passphrase or key is wrong or does not open everything, or the adoption was not confirmed.",
                .damaged: "The file is damaged.",
                .conflict:
                    "The file has a second name (a hard link), or another program changed it meanwhile.",
            ],
            standard: .copy))

    @Flag(help: "Do not prompt for a confirmation.") var yes = false
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        try session.requireFile()
        try session.requireWriting()
        let path = try session.vaultPath
        let copy = try session.openUnlockedCopy(at: path)
        let found = try? copy.verify()
        // The user must know the loss before confirming.
        if found.map({ $0.isOlderThanSeen || $0.isForked }) ?? false, yes || console.canAsk {
            console.note("this file lacks changes that this device has seen")
        }
        if !yes { try console.confirm("Make \(path.string) the vault, and any other file of it a copy?") }
        let report = try calling { () throws(TokenStorageError) in
            try copy.adopt { done, total in console.progress.show("Adopting", done, of: total) }
        }
        console.progress.clear()
        session.releaseFromAgent(after: "adopted")
        report.tell("Adopted", console, json: format.json)
        return .done
    }
}

extension Session {
    /// Makes the agent release the vault after the change `happened`, because the agent holds keys of the
    /// previous file. Prints a note if the agent held the vault.
    func releaseFromAgent(after happened: String) {
        if releaseFromAgent() {
            console.note(
                "the agent released the vault, which was \(happened): run \"vaultctl unlock\" to unlock the new file"
            )
        }
    }
}

extension RestoreReport {
    /// Reports the result, which begins with the word `done`, and the paths of kept files.
    fileprivate func tell(_ done: String, _ console: Console, json isJSON: Bool) {
        for note in notes { console.note(note) }
        if let replaced { console.note("the previous file is kept as \(replaced.string)") }
        if let staleCopy { console.note("\(staleCopy.string) is a copy from now on") }
        guard isJSON else {
            console.remark("\(done) a vault with \(counted(items, "item")).")
            return
        }
        var json = JSONWriter(console.output)
        json.object { json in
            json.member("items", items)
            json.member("replaced", replaced?.string)
            json.member("staleCopy", staleCopy?.string)
            json.array("notes") { json in
                for note in notes { json.element(note) }
            }
        }
        json.end()
    }
}
