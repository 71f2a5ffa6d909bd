import ArgumentParser
import ProgramSupport
import TokenVault
import TokenVaultPlatform
import VaultAgent

struct List: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Print the keys of a service, never their secrets.",
            description: """
                A line has one key. On a terminal, the output is a table. With --all-services, a line has the service and the \
                key, with a tab between them. With --json, the output is an array of the objects of "vaultctl info --json".

                Control characters are printed as \\n, \\t or \\u{1b}, and a backslash in such a name as \\\\. --json prints every \
                name unchanged.

                Items that cannot be shown are counted on standard error, and the exit status says why. If the agent knows that \
                nothing is hidden, as in an empty vault, the exit status is 0.
                """,
            examples: [
                "vaultctl list",
                "vaultctl list --service com.example.app --prefix refresh",
                "vaultctl list --all-services --attribute host=example.com --json",
            ],
            statuses: [
                .locked: "Items are hidden while the vault is locked, or no unlock method was given.",
                .refused: "The passphrase or key is wrong, or does not open some of the items.",
                .wrongDevice: "Some of the items belong to another device.",
                .damaged:
                    "The vault or an item is damaged, or the vault is an old copy or another than expected.",
                .unavailable:
                    "The vault, the keyring or the agent is not available, or a newer program stored an item.",
            ],
            standard: .items))

    @OptionGroup var service: ServiceOptions
    @Flag(help: "List the keys of every service.") var allServices = false
    @Option(help: ArgumentHelp("Only keys that begin with this text.", valueName: "text")) var prefix: String?
    @Option(
        help: ArgumentHelp(
            "Only items with this attribute. May be given several times.", valueName: "name=value"))
    var attribute: [String] = []
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        guard !allServices || service.service == nil else {
            throw .usage("--service and --all-services exclude each other", "give one of them")
        }
        let query = try ItemDetails.query(prefix: prefix, attributes: attribute)
        let (listing, state) = try items(query, session)
        if format.json {
            var json = JSONWriter(console.output)
            json.array { json in
                for item in listing.items { json.object { json in json.item(item) } }
            }
            json.end()
        } else if StandardStream.output.isTerminal {
            ItemTable(listing.items, showsServices: allServices)
                .show(on: console.output, columns: StandardStream.output.columns)
        } else {
            for item in listing.items {
                let key = PrintedName.line(item.key.name)
                console.output.line(allServices ? "\(PrintedName.line(item.service))\t\(key)" : key)
            }
        }
        guard listing.hidden > 0 else { return .done }
        let isKeyring = session.backend == .secretService
        throw Self.failure(
            hiding: listing, state,
            unlocking: isKeyring ? "unlock their keyring to see them all" : Self.unlocking)
    }

    private static let unlocking = "unlock to see them all"

    /// Returns the failure that gives the reasons for hidden items. Of several reasons, the first determines
    /// the status.
    static func failure(
        hiding listing: TokenListing, _ state: LockState, unlocking: String = unlocking
    ) -> CommandFailure {
        failure(hiding: listing, state, unlocking: unlocking) { $0 == 1 ? "1 item is" : "\($0) items are" }
    }

    /// Returns the same failure. `items` returns the beginning of the sentence for a number of items.
    static func failure(
        hiding listing: TokenListing, _ state: LockState, unlocking: String = unlocking,
        _ items: (Int) -> String
    ) -> CommandFailure {
        let reasons = listing.hiddenReasons
        let others = listing.hidden - reasons.values.reduce(0, +)
        var parts: [CommandFailure] = []
        let dark = (reasons[.locked] ?? 0) + (state == .unlocked ? 0 : others)
        if dark > 0 {
            parts.append(
                CommandFailure(.locked, "\(items(dark)) not shown while locked", unlocking))
        }
        if let count = reasons[.corrupt] {
            parts.append(
                CommandFailure(
                    .damaged, "\(items(count)) damaged or tampered with", "\"vaultctl verify\" shows where"))
        }
        if let count = reasons[.unsupportedFormat] {
            parts.append(
                CommandFailure(.unavailable, "\(items(count)) from a newer program", "use that program"))
        }
        if let count = reasons[.wrongDevice] {
            parts.append(
                CommandFailure(
                    .wrongDevice, "\(items(count)) not shown on this device",
                    "list them on that device; if it is this one, its key is missing: check HOME, XDG_STATE_HOME, --state-dir"
                ))
        }
        if let count = reasons[.notPermitted] {
            parts.append(
                CommandFailure(
                    .refused, "\(items(count)) not shown with this unlock method",
                    "unlock with the passphrase"))
        }
        var failure =
            parts.first
            ?? CommandFailure(.wrongDevice, "\(items(listing.hidden)) not shown", "list them elsewhere")
        failure.happened = parts.isEmpty ? failure.happened : parts.map(\.happened).joined(separator: ", ")
        return failure
    }

    private func items(
        _ query: TokenQuery, _ session: Session
    ) throws(CommandFailure) -> (TokenListing, LockState) {
        if allServices, session.backend == .secretService {
            let keyring = session.keyring()
            return try calling { () throws(TokenStorageError) in
                let services = try keyring.servicesBlocking()
                var listing = TokenListing(
                    items: [], hidden: services.hidden, hiddenReasons: services.hiddenReasons)
                var hidden = 0
                for service in services.services {
                    let part = try keyring.storage(service: service).blocking.list(query)
                    listing.items += part.items
                    hidden += part.hidden
                }
                // The keyring may have been locked between the two queries.
                if hidden > listing.hidden {
                    (listing.hidden, listing.hiddenReasons) = (hidden, [.locked: hidden])
                }
                return (listing, .unlocked)
            }
        }
        if allServices, let agent = try session.agentVault() {
            return try calling { () throws(TokenStorageError) in
                (try agent.listAllServices(query), try agent.lockState())
            }
        }
        if allServices, session.backend == .file {
            let vault = try session.openUnlockedVault()
            return try calling { () throws(TokenStorageError) in
                (try vault.listAllServices(query), try vault.status().state)
            }
        }
        let storage = try session.storage(service: try Settings.service(service.service))
        return try calling { () throws(TokenStorageError) in
            let listing = try storage.list(query)
            // A keyring gives the reasons itself. Its lock state covers only the collection for new items,
            // which may be missing.
            let isTold = listing.hidden == listing.hiddenReasons.values.reduce(0, +)
            return (listing, isTold ? .unlocked : try storage.lockState())
        }
    }
}
