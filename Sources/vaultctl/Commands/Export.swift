import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

struct Export: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Write the items into an encrypted file, to be imported elsewhere.",
            description: """
                The items of all services go into the file, which has a passphrase of its own. The command prompts for that \
                passphrase twice, or reads it with --export-passphrase-file. With - as the file, the export goes to standard \
                output. An existing file is never overwritten.

                Items of the this-device-only policies stay behind; the default policy is one of these. Standard error says how many. With \
                --all-or-nothing, nothing is written when an item has to stay behind. \(UnlockOptions.opensFile)

                With --json, the output is an object with items and staying, two numbers.
                """,
            examples: [
                "vaultctl export tokens.export",
                """
                vaultctl export - --export-passphrase-file export.txt | \\
                  ssh host 'cat >tokens.export'
                """,
            ],
            statuses: [
                .refused:
                    "The passphrase or key is wrong or does not open everything, or the passphrase of the export was not given.",
                .wrongDevice: "With --all-or-nothing: an item has to stay behind. Nothing was written.",
                .unavailable: "The vault or the directory of the file is not available.",
                .conflict: "The file exists already.",
            ],
            standard: .copy))

    @Argument(help: "The file to create, or - for standard output.", completion: .file()) var file: String
    @OptionGroup var passphrase: ExportPassphraseOptions
    @Flag(help: "Write nothing if an item has to stay behind.") var allOrNothing = false
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
