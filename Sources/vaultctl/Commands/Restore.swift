import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

struct Restore: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Put a copy in the vault's place, on purpose.",
        discussion: """
            For a backup, or over a vault that is damaged or said to be older than what this device has seen. \
            The copy is checked to the last byte and opened with what opened it when it was made. What is in \
            the vault's place is kept beside it, under a name that is told. Programs that have the vault open \
            go on with the restored one; the agent lets go of it, until it is unlocked there again. Asks before it replaces something, unless --yes is given. \
            \(UnlockOptions.opensFile)

            Examples:
              vaultctl restore /media/backup/default.vault
              vaultctl restore old.vault --vault team.vault --key-file team.key --yes
            """)

    @Argument(help: "The copy to put in the vault's place.", completion: .file()) var file: String
    @Flag(help: "Do not ask.") var yes = false
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
        abstract: "Settle which is the vault when it is at two paths.",
        discussion: """
            Makes the file that --vault names the vault from now on. The other one stays as it is, and is a \
            copy: "vaultctl export" and "vaultctl verify" still read it. Asks, unless --yes is given. \
            \(UnlockOptions.opensFile)

            Examples:
              vaultctl adopt
              vaultctl adopt --vault /media/stick/default.vault --yes
            """)

    @Flag(help: "Do not ask.") var yes = false
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
