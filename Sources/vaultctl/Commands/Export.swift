import ArgumentParser
import SystemPackage
import TokenVault
import TokenVaultPlatform

struct Export: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write the items into an encrypted file, to be imported elsewhere.",
        discussion: """
            The file has a passphrase of its own, asked for twice or read with --export-passphrase-file. \
            Items that may not leave this device stay behind and are counted. A file that is there is never \
            overwritten; - writes to standard output.

            Examples:
              vaultctl export tokens.export
              vaultctl export - --export-passphrase-file export.txt | ssh host 'cat >tokens.export'
            """)

    @Argument(help: "The file to make, or - for standard output.", completion: .file()) var file: String
    @OptionGroup var passphrase: ExportPassphraseOptions
    @Flag(help: "Write nothing when an item has to stay behind.") var allOrNothing = false
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let isStream = file == "-"
        guard !(isStream && format.json) else {
            throw .usage("--json and the export would both go to standard output", "export to a file")
        }
        guard !(isStream && StandardStream.output.isTerminal) else {
            throw .usage("standard output is a terminal", "give the path of a file, or redirect it")
        }
        let path = try ExportPassphraseOptions.path(file)
        try Self.refuseExisting(path)
        let source = try passphrase.path
        let vault = try session.openUnlockedVault()
        let secret = try ExportPassphraseOptions.readNew(source, console)
        console.progress.show("Exporting …")
        let progress = { (done: Int, total: Int) in console.progress.show("Exporting", done, of: total) }
        let report = try calling { () throws(TokenStorageError) in
            if let path {
                try vault.export(
                    to: path, passphrase: secret, allOrNothing: allOrNothing, progress: progress)
            } else {
                try vault.export(
                    to: .standardOutput, passphrase: secret, allOrNothing: allOrNothing, progress: progress)
            }
        }
        console.progress.clear()
        if report.staying > 0 {
            console.note("items that stay behind, since they may not leave this device: \(report.staying)")
        }
        if format.json {
            var json = JSONWriter(console.output)
            json.object { json in
                json.member("items", report.items)
                json.member("staying", report.staying)
            }
            json.end()
        } else {
            console.remark("Exported \(report.items) items")
        }
        return .done
    }

    /// Says so before a passphrase is asked for; the library makes sure.
    private static func refuseExisting(_ path: FilePath?) throws(CommandFailure) {
        guard let path else { return }
        let exists: Bool
        do { exists = try SmallFile.exists(path) } catch {
            throw CommandFailure(error, "the directory of the export", "check the path")
        }
        if exists { throw CommandFailure(.conflict, "the file is there already", "choose another name") }
    }
}

struct Import: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Store the items of an exported file.",
        discussion: """
            The file's passphrase is asked for, or read with --export-passphrase-file. The whole file is \
            authenticated before anything is stored. When a key has another value here already, nothing is \
            imported, unless --on-conflict says which of the two to keep.

            Examples:
              vaultctl import tokens.export
              vaultctl import tokens.export --on-conflict skip
              ssh host 'cat tokens.export' | vaultctl import - --export-passphrase-file export.txt
            """)

    @Argument(help: "The file, or - for standard input.", completion: .file()) var file: String
    @OptionGroup var passphrase: ExportPassphraseOptions
    @Option(
        help: ArgumentHelp(
            "What to do when a key has another value here: fail, skip or replace.", valueName: "rule"),
        completion: .list(ImportConflictRule.allCases.map(\.rawValue)))
    var onConflict: String?
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let path = try ExportPassphraseOptions.path(file)
        guard let rule = ImportConflictRule(rawValue: onConflict ?? "fail") else {
            throw .usage("--on-conflict has no such rule", "use fail, skip or replace")
        }
        let source = try passphrase.path
        let vault = try session.openUnlockedVault()
        let secret = try ExportPassphraseOptions.readCurrent(source, console)
        console.progress.show("Importing …")
        let progress = { (done: Int, total: Int) in console.progress.show("Importing", done, of: total) }
        let report = try calling { () throws(TokenStorageError) in
            if let path {
                try vault.importItems(
                    from: path, passphrase: secret, onConflict: rule, progress: progress)
            } else {
                try vault.importItems(
                    from: .standardInput, passphrase: secret, onConflict: rule, progress: progress)
            }
        }
        console.progress.clear()
        if report.skipped > 0 {
            console.note("items of which this vault keeps its own value: \(report.skipped)")
        }
        if format.json {
            var json = JSONWriter(console.output)
            json.object { json in
                json.member("added", report.added)
                json.member("replaced", report.replaced)
                json.member("skipped", report.skipped)
                json.member("unchanged", report.unchanged)
            }
            json.end()
        } else {
            console.remark(
                "Imported \(report.added + report.replaced) items, "
                    + "\(report.unchanged) were here already")
        }
        return .done
    }
}

/// Where the passphrase of an export comes from.
struct ExportPassphraseOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The file whose first line is the export's passphrase.", valueName: "path"),
        completion: .file())
    var exportPassphraseFile: String?

    var path: FilePath? {
        get throws(CommandFailure) {
            try Settings.path(exportPassphraseFile, named: "--export-passphrase-file", environment: nil)
        }
    }

    /// The file that an argument names; `nil` for a stream.
    static func path(_ argument: String) throws(CommandFailure) -> FilePath? {
        guard !argument.isEmpty else { throw .usage("the file is empty", "give a path, or -") }
        return argument == "-" ? nil : FilePath(argument)
    }

    /// Reads the passphrase of a new export, or asks for it twice.
    static func readNew(_ path: FilePath?, _ console: Console) throws(CommandFailure) -> Secret {
        if let path { return try read(path, console) }
        if let secret = try console.askNewPassphrase("Passphrase of the export") { return secret }
        throw nobodyToAsk
    }

    /// Reads the passphrase of an export that is there, or asks for it.
    static func readCurrent(_ path: FilePath?, _ console: Console) throws(CommandFailure) -> Secret {
        if let path { return try read(path, console) }
        if let secret = try console.askHidden("Passphrase of the export: "), !secret.isEmpty { return secret }
        throw nobodyToAsk
    }

    private static func read(_ path: FilePath, _ console: Console) throws(CommandFailure) -> Secret {
        let secret = try UnlockSource.readPassphraseFile(path, console)
        guard !secret.isEmpty else {
            throw .usage("the export's passphrase is empty", "its first line must be the passphrase")
        }
        return secret
    }

    private static let nobodyToAsk = CommandFailure(
        .refused, "there is no passphrase for the export", "give --export-passphrase-file")
}
