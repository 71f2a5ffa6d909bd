import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

struct Import: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Store the items of an exported file, or of lines of JSON.",
            description: """
                The command prompts for the passphrase of the export, or reads it with --export-passphrase-file. The whole file \
                is authenticated before anything is stored. If a key has another value here, nothing is imported, unless \
                --on-conflict says which of the two values stays. \(UnlockOptions.opensFile)

                The file sets how much work its passphrase takes: up to 12 passes over 2 GiB. Give --timeout for a file that \
                you did not make. If an import times out, the error line says how much was stored. The same command then \
                continues.

                With --format ndjson, a line is an object with key, and value or valueBase64. The object may also have service, \
                policy, policyOrigin, label, attributes and expires. Other fields are an error, except those that "vaultctl \
                retrieve --json" prints. --ignore-unknown skips other fields and counts them. All lines are stored as one \
                commit, or none. Example of a line:
                  {"key": "a", "value": "b", "policy": "when-unlocked"}

                With --json, the output is an object with the numbers added, replaced, skipped and unchanged.
                """,
            examples: [
                "vaultctl import tokens.export",
                "vaultctl import tokens.export --on-conflict skip",
                """
                ssh host 'cat tokens.export' | \\
                  vaultctl import - --export-passphrase-file export.txt
                """,
                "vaultctl import --format ndjson tokens.json",
            ],
            statuses: [
                .failure: "The lines cannot be read or exceed 1 GiB, or another failure.",
                .refused:
                    "A passphrase or key is wrong or does not permit this, or the passphrase of the export was not given.",
                .damaged: "The file is not an export or is damaged, or the vault is damaged or an old copy.",
                .unavailable:
                    "The vault or the export is not available, or a newer program wrote the export.",
                .conflict: "A key has another value here, or the same vault is at two paths.",
                .timedOut:
                    "The command timed out, or the outcome is unknown. The error line says what was stored.",
                .usage: "The command line or a line of JSON is wrong. Nothing was imported.",
            ],
            standard: .vault))

    @Argument(help: "The file, or - for standard input.", completion: .file()) var file: String
    @OptionGroup var passphrase: ExportPassphraseOptions
    @Option(
        name: .customLong("format"),
        help: ArgumentHelp(
            "The format of the file: export (the default) or ndjson (lines of JSON).", valueName: "format"),
        completion: .list(["export", "ndjson"]))
    var inputFormat: String?
    @Option(
        help: ArgumentHelp(
            "What to do if a key has another value here: fail (the default; nothing is imported), skip or replace.",
            valueName: "rule"),
        completion: .list(ImportConflictRule.allCases.map(\.rawValue)))
    var onConflict: String?
    @Flag(help: "Skip fields of a line that no item has, and count them on standard error.")
    var ignoreUnknown = false
    @OptionGroup var scope: ServiceOptions
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let path = try ExportPassphraseOptions.path(file)
        let rule: ImportConflictRule = try Settings.choice(
            onConflict ?? "fail", "--on-conflict has no such rule")
        let format: Format = try Settings.choice(inputFormat ?? "export", "--format has no such format")
        let report: ImportReport
        switch format {
        case .export: report = try importExport(session, path, rule)
        case .ndjson: report = try importLines(session, path, rule)
        }
        console.progress.clear()
        show(report, console)
        return .done
    }

    private enum Format: String, CaseIterable { case export, ndjson }

    private func importExport(
        _ session: Session, _ path: FilePath?, _ rule: ImportConflictRule
    ) throws(CommandFailure) -> ImportReport {
        guard !ignoreUnknown else {
            throw .usage("--ignore-unknown is for lines of JSON", "give --format ndjson with it")
        }
        guard scope.service == nil else {
            throw .usage("an export names the services itself", "leave --service out")
        }
        let console = session.console
        if StreamFile.beginning(of: path, 64).map(ImportLines.seemToBegin) ?? false {
            throw .usage("the file begins like lines of JSON", "give --format ndjson to import it")
        }
        let source = try passphrase.path
        let vault = try session.openUnlockedVault()
        let secret = try ExportPassphraseOptions.readCurrent(source, console)
        let progress = console.begin("Importing")
        return try storing { () throws(TokenStorageError) in
            if let path {
                try vault.importItems(
                    from: path, passphrase: secret, onConflict: rule, progress: progress)
            } else {
                try vault.importItems(
                    from: .standardInput, passphrase: secret, onConflict: rule, progress: progress)
            }
        }
    }

    private func importLines(
        _ session: Session, _ path: FilePath?, _ rule: ImportConflictRule
    ) throws(CommandFailure) -> ImportReport {
        guard try passphrase.path == nil else {
            throw .usage("lines of JSON have no passphrase", "leave --export-passphrase-file out")
        }
        let console = session.console
        let service = try Settings.service(scope.service)
        let vault = try session.openUnlockedVault()
        let progress = console.begin("Reading")
        var bytes: [UInt8]
        do {
            let input = try path.map { (path) throws(SystemFailure) in try InputSource.file(path) }
            bytes = try (input ?? .standard).readAll(
                limit: ImportLines.longestInput, deadline: console.deadline)
        } catch {
            throw CommandFailure(error, "the lines", "check the path; at most 1 GiB is read")
        }
        defer { SmallFile.wipe(&bytes) }
        var lines = ImportLines(
            service: service, defaultPolicy: vault.storage(service: service).defaultPolicy,
            ignoresUnknown: ignoreUnknown)
        let items = try lines.items(in: bytes, until: console.deadline, progress: progress)
        console.progress.show("Importing …")
        do {
            let report = try storing { () throws(TokenStorageError) in
                try vault.importItems(items, onConflict: rule)
            }
            if lines.unknownMembers > 0 {
                console.note("ignored fields: \(lines.unknownMembers)")
            }
            return report
        } catch {
            throw error.mayBeDone ? error : error.withNothingImported
        }
    }

    /// Imports items. Adds the option that settles a conflict to the failure.
    private func storing(
        _ body: () throws(TokenStorageError) -> ImportReport
    ) throws(CommandFailure) -> ImportReport {
        do { return try body() } catch {
            var failure = CommandFailure(error)
            if error.code == .alreadyExists {
                failure.advice += ", with --on-conflict skip or --on-conflict replace"
            }
            throw failure
        }
    }

    private func show(_ report: ImportReport, _ console: Console) {
        if report.skipped > 0 {
            console.note("items that keep the value of this vault: \(report.skipped)")
        }
        if format.json {
            JSONWriter.line(
                [
                    "added": report.added, "replaced": report.replaced, "skipped": report.skipped,
                    "unchanged": report.unchanged,
                ], to: console.output)
        } else {
            console.remark(
                "Imported \(report.added + report.replaced) items, "
                    + "\(report.unchanged) were already here")
        }
    }
}
