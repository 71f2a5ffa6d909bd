public import TokenVaultCore
internal import TokenVaultPlatform

/// One service's view of a file vault.
///
/// Reads of an unlocked vault run on the caller's thread: a look at the end of the file, a `pread` and a
/// decryption. Writes run on the vault's writer thread; writes that wait together share one `fdatasync`.
/// Cancelling a task cancels a write that has not begun (`cancelled`); a write that has begun runs to its
/// end.
public struct FileTokenStorage: BridgedTokenStorage {
    /// The same storage for code that cannot `await`.
    public let blocking: Blocking

    /// Creates the view of `service` of `vault`. Each call checks the service: at most 1,024 bytes of UTF-8,
    /// else `invalidArgument`.
    public init(_ vault: FileVault, service: String) { self.init(vault.blocking, service: service) }

    /// Creates the view of `service` of a vault that was opened for blocking code.
    public init(_ vault: BlockingFileVault, service: String) {
        blocking = Blocking(vault: vault, service: service)
    }

    /// Runs a read of one item on the caller's thread, unless it may have to wait for other machines. Runs
    /// all other calls on a thread of the vault.
    public func run<Value: Sendable>(
        _ call: StorageCall, _ body: @escaping @Sendable (Blocking) throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value {
        let blocking = blocking
        let mayWait =
            switch call.kind {
            case .lockState: false
            case .read: blocking.vault.location.locksReaders
            // A list reads every item of the service: its time is not bounded.
            case .list, .write: true
            }
        guard mayWait, let session = try? blocking.vault.session() else { return try body(blocking) }
        let result = await withCheckedContinuation { continuation in
            session.queue.read {
                continuation.resume(
                    returning: Result { () throws(TokenStorageError) in try body(blocking) })
            }
        }
        return try result.get()
    }

    @discardableResult
    public func commit(_ changes: [TokenChange]) async throws(TokenStorageError) -> TokenCommit {
        let operation = CommitRules.operation(changes)
        let (session, facts) = (try blocking.sessionForCommit(changes), CommitFacts())
        let generation = try await Self.submit(
            session.preparation(service: service, changes: changes, existed: facts), to: session,
            operation: operation)
        return facts.commit(generation)
    }

    @discardableResult
    public func deleteAll() async throws(TokenStorageError) -> Int {
        let (session, facts) = (try blocking.sessionForDeletion(), CommitFacts())
        _ = try await Self.submit(
            session.deletionOfAll(service: service, existed: facts), to: session, operation: "delete")
        return facts.existed.count
    }

    /// Returns the changes from now on. Events also report writes of other processes, usually within a
    /// millisecond or two, by inotify(7). Where the system does not report every change, the vault is checked
    /// every second. That is on network file systems, FUSE, 9p and overlayfs, or without an inotify instance
    /// or watch.
    ///
    /// Changes of items whose names cannot be read are reported after the next unlock. An observer from
    /// before the first unlock then gets ``TokenEvent/overflowed`` and must list again. So does every
    /// observer when a file that does not continue the vault's file takes its place. One thread watches all
    /// vaults of the process while any of them has an observer.
    public func changes() -> TokenChanges { blocking.vault.changes(service: service) }

    private static func submit(
        _ prepare: @escaping WriteRequest.Preparation,
        to session: VaultSession, operation: String
    ) async throws(TokenStorageError) -> Generation? {
        let slot = RequestSlot()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let request = WriteRequest(prepare: prepare) { continuation.resume(returning: $0) }
                slot.fill(request)
                session.queue.submit(request)
            }
        } onCancel: {
            slot.cancel()
        }
        do { return try result.get() } catch { throw error.during(operation) }
    }
}

extension FileTokenStorage {
    /// The view of a service for code that cannot `await`: every call runs on the caller's thread.
    ///
    /// It supports all portable policies, with this device's key in the vault those of this device as well, and
    /// with a passphrase all five. The default is `whenUnlockedThisDeviceOnly`, or `whenUnlocked` in a vault
    /// made without a state directory.
    public struct Blocking: BlockingTokenStorage {
        let vault: BlockingFileVault
        public let service: String

        public var supportedPolicies: Set<AccessPolicy> { vault.supportedPolicies }
        public var defaultPolicy: AccessPolicy { vault.defaultPolicy }

        public func lockState() throws(TokenStorageError) -> LockState { try vault.lockState() }

        public func secret(for key: TokenKey) throws(TokenStorageError) -> Secret? {
            try during("retrieve") { () throws(TokenStorageError) in
                try sessionForReading(key, "retrieve").secret(service: service, key: key)
            }
        }

        public func item(for key: TokenKey) throws(TokenStorageError) -> TokenItem? {
            try during("retrieve") { () throws(TokenStorageError) in
                try sessionForReading(key, "retrieve").item(service: service, key: key)
            }
        }

        public func metadata(for key: TokenKey) throws(TokenStorageError) -> TokenMetadata? {
            try during("info") { () throws(TokenStorageError) in
                try sessionForReading(key, "info").metadata(service: service, key: key)
            }
        }

        public func list(_ query: TokenQuery) throws(TokenStorageError) -> TokenListing {
            try during("list") { () throws(TokenStorageError) in
                try sessionForListing(query).list(service: service, query: query)
            }
        }

        @discardableResult
        public func commit(_ changes: [TokenChange]) throws(TokenStorageError) -> TokenCommit {
            try during(CommitRules.operation(changes)) { () throws(TokenStorageError) in
                let (session, facts) = (try sessionForCommit(changes), CommitFacts())
                let generation = try session.queue.commit(
                    session.preparation(service: service, changes: changes, existed: facts))
                return facts.commit(generation)
            }
        }

        @discardableResult
        public func deleteAll() throws(TokenStorageError) -> Int {
            try during("delete") { () throws(TokenStorageError) in
                let (session, facts) = (try sessionForDeletion(), CommitFacts())
                _ = try session.queue.commit(
                    session.deletionOfAll(service: service, existed: facts))
                return facts.existed.count
            }
        }

        // MARK: - Checks before anything is done

        func sessionForReading(
            _ key: TokenKey, _ operation: String
        ) throws(TokenStorageError) -> VaultSession {
            let rules = Validation(operation: operation, backend: TokenStorageError.fileBackend)
            try rules.check(service: service)
            try rules.check(key: key)
            return try vault.session()
        }

        func sessionForListing(_ query: TokenQuery) throws(TokenStorageError) -> VaultSession {
            try during("list") { () throws(TokenStorageError) in
                let rules = Validation(operation: "list", backend: TokenStorageError.fileBackend)
                try rules.check(service: service)
                try rules.check(query: query)
                return try vault.session()
            }
        }

        func sessionForCommit(_ changes: [TokenChange]) throws(TokenStorageError) -> VaultSession {
            let operation = CommitRules.operation(changes)
            return try during(operation) { () throws(TokenStorageError) in
                let rules = Validation(operation: operation, backend: TokenStorageError.fileBackend)
                try rules.check(service: service)
                try rules.check(changes: changes)
                return try vault.session()
            }
        }

        func sessionForDeletion() throws(TokenStorageError) -> VaultSession {
            try during("delete") { () throws(TokenStorageError) in
                let rules = Validation(operation: "delete", backend: TokenStorageError.fileBackend)
                try rules.check(service: service)
                return try vault.session()
            }
        }
    }
}

extension FileTokenStorage: VaultBacked {
    /// The vault's path.
    public var vaultPath: FilePath { blocking.vault.location.absolutePath ?? blocking.vault.path }
}
