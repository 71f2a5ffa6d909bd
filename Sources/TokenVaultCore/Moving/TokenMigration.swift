/// Moves items from one storage to another: copies each and reads it back. Only then, and only on request, it
/// deletes the item at the source.
///
/// ```swift
/// let migration = TokenMigration(from: oldVault, to: newVault, options: .init(deletesAtSource: true))
/// let summary = await migration.run()
/// if !summary.isComplete { print(summary) }
/// ```
///
/// An item is stored with its label, attributes, policy and expiry. The copy has its own `created`,
/// `modified` and generation. An item whose policy the destination does not support is left, unless
/// ``Options/policies`` maps that policy to another. No policy is weakened without such a request, and every
/// item that is left is reported.
///
/// It can be run again after any interruption: an item that is at the destination with the same secret and
/// details counts as copied. At the source only the generation that was copied is deleted, so that a change
/// made meanwhile is not lost but copied too.
public struct TokenMigration: Sendable {
    /// The handling of an item whose key has a different item at the destination: another secret, policy,
    /// label, attribute or expiry.
    public enum ConflictRule: String, CaseIterable, Hashable, Sendable {
        /// Look for conflicts before anything is copied, and copy nothing when there is one.
        case fail
        /// Leave both items unchanged.
        case skip
        /// Replace the item at the destination, unless it changes again meanwhile.
        case replace
    }

    /// Options of a migration.
    public struct Options: Sendable {
        /// Whether an item is deleted at the source after its copy was read back.
        public var deletesAtSource: Bool
        /// The handling of conflicts.
        public var conflicts: ConflictRule
        /// The policy at the destination for each policy at the source. A policy that is not listed is kept.
        /// `[.whenUnlockedThisDeviceOnly: .whenUnlocked]` lets items of this device leave it.
        public var policies: [AccessPolicy: AccessPolicy]
        /// The keys to move, in every service; `nil` for all.
        public var keys: Set<TokenKey>?

        /// Creates options. By default all items are copied, policies are kept, and a conflict is an error.
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

    /// Creates a migration of the items of one storage to another. Their services may differ.
    public init(
        from source: any TokenStorage, to destination: any TokenStorage, options: Options = Options()
    ) {
        route = .storages(MigrationPair(source: source, destination: destination))
        self.options = options
    }

    /// Creates a migration of the items of `services`, or of all services that `source` shows, to the same
    /// services of `destination`.
    public init(
        from source: any TokenKeychain, to destination: any TokenKeychain, services: [String]? = nil,
        options: Options = Options()
    ) {
        route = .keychains(source, destination, services: services)
        self.options = options
    }

    /// Runs the migration and returns its summary, also when an error ended it early:
    /// ``MigrationSummary/stop``. Calls `progress` after each item.
    ///
    /// Cancelling the task stops the migration between two steps. Storages must be unlocked. Two concurrent
    /// runs do no harm.
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
                // For all services, the keychain's count includes services in which every item is hidden.
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

/// The source and the destination of one service.
struct MigrationPair: Sendable {
    let source: any TokenStorage
    let destination: any TokenStorage
}
