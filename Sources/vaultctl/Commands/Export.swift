import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

struct Export: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write the items into an encrypted file, to be imported elsewhere.",
        discussion: """
            The file has a passphrase of its own, asked for twice or read with --export-passphrase-file. \
            Items that may not leave this device stay behind and are counted. A file that is there is never \
            overwritten; - writes to standard output. \(UnlockOptions.opensFile)

            Examples:
              vaultctl export tokens.export
              vaultctl export - --export-passphrase-file export.txt | \\
                ssh host 'cat >tokens.export'
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
        if let path { try OutputPlace.requireFree(path) }
        let source = try passphrase.path
        let vault = try session.openUnlockedVault(orCopy: true)
        let secret = try ExportPassphraseOptions.readNew(source, console)
        let progress = console.begin("Exporting")
        let report: ExportReport
        do throws(TokenStorageError) {
            report =
                if let path {
                    try vault.export(
                        to: path, passphrase: secret, allOrNothing: allOrNothing, progress: progress)
                } else {
                    try vault.export(
                        to: .standardOutput, passphrase: secret, allOrNothing: allOrNothing,
                        progress: progress)
                }
        } catch {
            if isStream, let failure = StandardStream.outputFailure { throw .output(failure) }
            throw CommandFailure(error)
        }
        console.progress.clear()
        if report.staying > 0 {
            console.note("items left behind, because they may not leave this device: \(report.staying)")
        }
        if format.json {
            JSONWriter.line(["items": report.items, "staying": report.staying], to: console.output)
        } else {
            console.remark("Exported \(counted(report.items, "item"))")
        }
        return .done
    }
}
