internal import TokenVaultPlatform

/// One service's view of the user's keyring.
///
/// Every call talks to another process and therefore runs on a thread that may wait, not on the caller's. It
/// takes at most ``SecretServiceConfiguration/timeout``. Cancelling a task ends its call and dismisses its
/// prompt (`cancelled`). A write that was sent is still completed.
public struct SecretServiceTokenStorage: TokenStorage {
    /// The same storage for code that cannot wait.
    public let blocking: Blocking

    /// Creates the view of `service` of a keyring. The calls check the service: at most 1,024 bytes of UTF-8,
    /// else `invalidArgument`.
    public init(_ secretService: SecretService, service: String) {
        blocking = Blocking(secretService: secretService, service: service)
    }

    /// The keyring behind the storage.
    public var secretService: SecretService { blocking.secretService }
    /// The service.
    public var service: String { blocking.service }
    /// `whenUnlocked` alone: a keyring enforces no other policy. The file vault enforces the others.
    public var supportedPolicies: Set<AccessPolicy> { blocking.supportedPolicies }
    /// `whenUnlocked`.
    public var defaultPolicy: AccessPolicy { blocking.defaultPolicy }

    /// Returns `locked` or `unlocked`, the state of the keyring. Never prompts the user. Throws `unavailable`
    /// when there is no libsecret, no bus, no service or no keyring.
    public func lockState() async throws(TokenStorageError) -> LockState {
        try await run("lockState") { (call) throws(TokenStorageError) in
            try blocking.lockState(for: call)
        }
    }

    /// See ``TokenStorage/secret(for:)``.
    public func secret(for key: TokenKey) async throws(TokenStorageError) -> Secret? {
        try await run("retrieve") { (call) throws(TokenStorageError) in
            try blocking.secret(for: key, for: call)
        }
    }

    /// See ``TokenStorage/item(for:)``.
    public func item(for key: TokenKey) async throws(TokenStorageError) -> TokenItem? {
        try await run("retrieve") { (call) throws(TokenStorageError) in
            try blocking.item(for: key, for: call)
        }
    }

    /// See ``TokenStorage/metadata(for:)``.
    public func metadata(for key: TokenKey) async throws(TokenStorageError) -> TokenMetadata? {
        try await run("info") { (call) throws(TokenStorageError) in
            try blocking.metadata(for: key, for: call)
        }
    }

    /// See ``TokenStorage/list(_:)``.
    public func list(_ query: TokenQuery) async throws(TokenStorageError) -> TokenListing {
        try await run("list") { (call) throws(TokenStorageError) in
            try blocking.list(query, for: call)
        }
    }

    /// See ``TokenStorage/commit(_:)``.
    @discardableResult
    public func commit(_ changes: [TokenChange]) async throws(TokenStorageError) -> TokenCommit {
        try await run(CommitRules.operation(changes)) { (call) throws(TokenStorageError) in
            try blocking.commit(changes, for: call)
        }
    }

    /// See ``TokenStorage/deleteAll()``.
    @discardableResult
    public func deleteAll() async throws(TokenStorageError) -> Int {
        try await run("delete") { (call) throws(TokenStorageError) in
            try blocking.deleteAll(for: call)
        }
    }

    /// See ``TokenStorage/changes()``. Changes by other processes, also by other programs than TokenVault,
    /// are reported as far as the Secret Service signals them. Two changes of an item in quick succession may
    /// be reported once. ``TokenEvent/overflowed`` means that the service or the bus went away and came back.
    public func changes() -> TokenChanges { secretService.subscribe(service) }

    /// Runs a call on a thread that may wait.
    private func run<Value: Sendable>(
        _ operation: String, _ body: @escaping @Sendable (BusCall) throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value {
        let call = BusCall(timeout: secretService.configuration.timeout)
        let threads = secretService.threads
        let result: Result<Value, TokenStorageError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                threads.run {
                    continuation.resume(
                        returning: Result { () throws(TokenStorageError) in
                            try call.during(operation) { () throws(TokenStorageError) in try body(call) }
                        })
                }
            }
        } onCancel: {
            call.cancel()
        }
        return try result.get()
    }
}

extension BusCall {
    /// Runs `body` and names the operation in its errors.
    func during<Value>(
        _ operation: String, _ body: () throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        do { return try body() } catch { throw error.during(operation) }
    }
}
