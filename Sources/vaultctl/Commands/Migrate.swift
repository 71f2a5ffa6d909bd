import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

struct Migrate: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Copy or move items to another store.",
        discussion: """
            Each item is copied with its label, attributes, policy and expiry, and read back; with --delete \
            it is then deleted where it came from. What is stopped, or killed, goes on when it is run again: \
            an item that is there already, the same in everything, counts as copied. Items that cannot be \
            read, or whose policy the destination cannot keep, stay and are told. Both stores are unlocked \
            with the same method unless the destination has options of its own. From a keyring, items of \
            other programs that have the attributes "service" and "account" are copied too; these stay there also \
            with --delete, and the number of those passed over is printed. \
            \(UnlockOptions.opensFile)

            Examples:
              vaultctl migrate --from secret-service --to file --all-services --delete
              vaultctl migrate --from file --to secret-service \\
                --map-policy when-unlocked-this-device-only=when-unlocked
              vaultctl migrate --from-vault old.vault --to-vault new.vault --all-services
              vaultctl migrate --from-vault old.vault --to file \\
                --service com.example.app --delete
              vaultctl migrate --from-vault usb.vault --to file \\
                --to-key-file ~/.config/example/vault.key \\
                --map-policy when-unlocked-this-device-only=when-unlocked
            """)

    @OptionGroup(title: "From and to") var ends: MigrationEndOptions
    @OptionGroup var service: ServiceOptions
    @Flag(help: "The items of every service.") var allServices = false
    @Flag(help: "Delete at the source what was read back at the destination.") var delete = false
    @Option(
        help: ArgumentHelp(
            """
            When something else is at the destination: fail (the default; nothing is copied), skip or \
            replace.
            """, valueName: "rule"),
        completion: .list(TokenMigration.ConflictRule.allCases.map(\.rawValue)))
    var onConflict: String?
    @Option(
        help: ArgumentHelp(
            "The policy that items of a policy get. May be given several times.", valueName: "policy=policy"))
    var mapPolicy: [String] = []
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        guard location.backend == nil else {
            throw .usage("--backend names neither the source nor the destination", "use --from and --to")
        }
        var location = location.arguments
        location.backend = Backend.file.rawValue
        let session = try Session(console, location, unlock.arguments)
        let services = try chosenServices()
        let options = TokenMigration.Options(
            deletesAtSource: delete, conflicts: try conflictRule(), policies: try policies())
        let stores = try MigrationStores(ends, session)
        if delete, stores.destinationIsMemory {
            throw .usage(
                "--delete with --to memory would lose every item", "choose a destination that lasts")
        }
        let (source, destination) = try stores.open()
        let migration = TokenMigration(
            from: source, to: destination, services: services, options: options)
        let summary = run(migration, console)
        console.progress.clear()
        let report = MigrationReport(summary: summary, conflicts: options.conflicts)
        if format.json { report.writeJSON(console.output) } else { report.show(console.output) }
        if stores.destinationIsMemory {
            console.note("the memory backend forgets everything when the command ends")
        }
        try report.check(isTimedOut: console.deadline?.hasPassed ?? false)
        return .done
    }

    /// Runs the migration in a task, while this thread shows the progress.
    private func run(_ migration: TokenMigration, _ console: Console) -> MigrationSummary {
        let news = Monitor(News())
        let task = Task.detached {
            let summary = await migration.run { progress in
                news.announce { $0.progress = progress }
            }
            news.announce { $0.summary = summary }
        }
        while true {
            let (progress, summary) = news.wait { news -> (MigrationProgress?, MigrationSummary?)? in
                guard news.progress != nil || news.summary != nil else { return nil }
                defer { news.progress = nil }
                return (news.progress, news.summary)
            }
            if let progress { console.progress.show("Moving", progress.done, of: progress.total) }
            if let summary { return summary }
            // The migration stops between two items, so that no item is left half done.
            if console.deadline?.hasPassed ?? false { task.cancel() }
        }
    }

    private struct News {
        var progress: MigrationProgress?
        var summary: MigrationSummary?
    }

    private func chosenServices() throws(CommandFailure) -> [String]? {
        guard allServices else { return [try Settings.service(service.service)] }
        guard service.service == nil else {
            throw .usage("--service and --all-services exclude each other", "give one of them")
        }
        return nil
    }

    private func conflictRule() throws(CommandFailure) -> TokenMigration.ConflictRule {
        guard let onConflict else { return .fail }
        return try Settings.choice(onConflict, "--on-conflict has no such rule")
    }

    private func policies() throws(CommandFailure) -> [AccessPolicy: AccessPolicy] {
        var policies: [AccessPolicy: AccessPolicy] = [:]
        for pair in mapPolicy {
            let names = pair.split(separator: "=", omittingEmptySubsequences: false)
            guard names.count == 2, let old = try ItemDetails.policy(String(names[0])),
                let new = try ItemDetails.policy(String(names[1]))
            else {
                throw .usage("--map-policy is not two policies", "write it as POLICY=POLICY")
            }
            guard policies.updateValue(new, forKey: old) == nil else {
                throw .usage("--map-policy names a policy twice", "name each once")
            }
        }
        return policies
    }
}
