import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

struct Migrate: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Copy or move items to another store.",
            description: """
                Each item is copied with its label, attributes, policy and expiry, and read back. With --delete, an item is then \
                deleted at the source. If another program stores a new value at the source meanwhile, that value is copied too.

                A migration that was stopped or killed continues when the command runs again: an identical item at the \
                destination counts as copied.

                Items that cannot be read stay at the source. So do items whose policy the destination cannot keep: a keyring \
                keeps when-unlocked only, and --map-policy permits a change. The command prints each item that stays with the \
                reason, and then the figures.

                Both stores are unlocked with the same method, unless the destination has options of its own. From a keyring, \
                items of other programs are copied too if they have the attributes "service" and "account". --delete never deletes items of other programs. The command counts the items of other programs that it does not copy. \(UnlockOptions.opensFile)
                """,
            examples: [
                "vaultctl migrate --from secret-service --to file --all-services --delete",
                """
                vaultctl migrate --from file --to secret-service \\
                  --map-policy when-unlocked-this-device-only=when-unlocked
                """,
                "vaultctl migrate --from-vault old.vault --to-vault new.vault --all-services",
                """
                vaultctl migrate --from-vault usb.vault --to file \\
                  --to-key-file ~/.config/example/vault.key \\
                  --map-policy when-unlocked-this-device-only=when-unlocked
                """,
            ],
            statuses: [
                .failure: "The destination cannot keep the policy of an item, or another failure.",
                .locked: "Items are locked and stayed, or no unlock method was given.",
                .refused: "A passphrase or key is wrong, or does not open some of the items, which stayed.",
                .wrongDevice: "Items belong to another device and stayed.",
                .conflict:
                    "The destination has another value (--on-conflict), or the same vault is at two paths.",
                .timedOut:
                    "The command timed out, or the outcome is unknown. The same command then continues.",
            ],
            standard: .vault))

    @OptionGroup(title: "From and to") var ends: MigrationEndOptions
    @OptionGroup var service: ServiceOptions
    @Flag(help: "Take the items of every service.") var allServices = false
    @Flag(help: "Delete each item at the source once its copy was read back.") var delete = false
    @Option(
        help: ArgumentHelp(
            """
            What to do if the destination has another value under the key: fail (the default; nothing is \
            copied), skip or replace.
            """, valueName: "rule"),
        completion: .list(TokenMigration.ConflictRule.allCases.map(\.rawValue)))
    var onConflict: String?
    @Option(
        help: ArgumentHelp(
            "The old policy of items, and the policy of their copies. May be given several times.",
            valueName: "policy=policy"))
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
