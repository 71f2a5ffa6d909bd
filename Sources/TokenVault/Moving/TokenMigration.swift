/// Moves items from one storage to another: copies each, reads it back, and only then, and only if asked,
/// deletes it at the source.
///
/// ```swift
/// let migration = TokenMigration(from: oldVault, to: newVault, options: .init(deletesAtSource: true))
/// let summary = await migration.run()
/// if !summary.isComplete { print(summary) }
/// ```
///
/// An item is stored with its label, attributes, policy and expiry; `created`, `modified` and the
/// generation are the copy's own. A policy that the destination does not support leaves the item where
/// it is, unless ``Options/policies`` says what it may become. Nothing is weakened that was not asked for,
/// and nothing that stays behind goes unreported.
///
/// It can be run again after whatever ended it: an item that is at the destination with the same secret
/// and the same details counts as copied. The source is only ever deleted from by the generation that was
/// copied, so that a change made meanwhile is not lost: it is copied in its turn.
public struct TokenMigration: Sendable {
    /// What to do with an item whose key has something else at the destination: another secret, policy,
    /// label, attribute or expiry.
    public enum ConflictRule: String, CaseIterable, Hashable, Sendable {
        /// Look for conflicts before anything is copied, and copy nothing when there is one.
        case fail
        /// Leave both as they are.
        case skip
        /// Replace what is at the destination, unless it changes again meanwhile.
        case replace
    }

    /// How to move.
    public struct Options: Sendable {
        /// Whether an item is deleted at the source when its copy was read back.
        public var deletesAtSource: Bool
        /// What to do with conflicts.
        public var conflicts: ConflictRule
        /// The policy that items of a policy get at the destination; one that is not named is kept.
        /// `[.whenUnlockedThisDeviceOnly: .whenUnlocked]` lets items of this device leave it.
        public var policies: [AccessPolicy: AccessPolicy]
        /// The keys to move, in every service; `nil` for all.
        public var keys: Set<TokenKey>?

        /// Options. Without any, all items are copied, policies are kept, and a conflict is an error.
        public init(
            deletesAtSource: Bool = false, conflicts: ConflictRule = .fail,
            policies: [AccessPolicy: AccessPolicy] = [:], keys: Set<TokenKey>? = nil
        ) {
            self.deletesAtSource = deletesAtSource
            self.conflicts = conflicts
            self.policies = policies
            self.keys = keys
        }
    }

    private enum Route: Sendable {
        case storages(MigrationPair)
        case keychains(any TokenKeychain, any TokenKeychain, services: [String]?)
    }

    private let route: Route
    private let options: Options

    /// Moves the items of one storage to another; their services may differ.
    public init(
        from source: any TokenStorage, to destination: any TokenStorage, options: Options = Options()
    ) {
        route = .storages(MigrationPair(source: source, destination: destination))
        self.options = options
    }

    /// Moves the items of `services`, or of all that `source` shows, to the same services of
    /// `destination`.
    public init(
        from source: any TokenKeychain, to destination: any TokenKeychain, services: [String]? = nil,
        options: Options = Options()
    ) {
        route = .keychains(source, destination, services: services)
        self.options = options
    }

    /// Moves, and tells what was done, also when something stopped it: ``MigrationSummary/stop``.
    /// `progress` is called after each item.
    ///
    /// Cancelling the task stops it between two steps. Storages must be unlocked. Two runs at once do no
    /// harm.
    public func run(progress: ((MigrationProgress) -> Void)? = nil) async -> MigrationSummary {
        var run = MigrationRun(options: options, progress: progress)
        do throws(MigrationStop) {
            switch route {
            case .storages(let pair): try await run.move([pair], hidden: nil)
            case .keychains(let source, let destination, let services):
                let listing = try await Self.listing(of: source, services)
                let pairs = listing.services.map { service in
                    MigrationPair(
                        source: source.storage(service: service),
                        destination: destination.storage(service: service))
                }
                // Of all services, also those are counted whose every item is dark.
                try await run.move(pairs, hidden: services == nil ? listing : nil)
            }
        } catch {
            run.summary.stop = error
        }
        return run.summary
    }

    private static func listing(
        of source: any TokenKeychain, _ services: [String]?
    ) async throws(MigrationStop) -> ServiceListing {
        if let services { return ServiceListing(services: services) }
        do { return try await source.services() } catch { throw MigrationStop(error, at: .source) }
    }
}

/// One service's two ends.
struct MigrationPair: Sendable {
    let source: any TokenStorage
    let destination: any TokenStorage
}
