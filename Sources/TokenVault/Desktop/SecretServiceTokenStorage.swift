internal import TokenVaultPlatform

/// One service's view of the person's keyring.
///
/// Every call talks to another process, so none runs on the caller's thread: it hops to a thread that may
/// wait, within ``SecretServiceConfiguration/timeout``. Cancelling a task ends its call and takes a prompt
/// back (`cancelled`); a write that was sent runs to its end.
public struct SecretServiceTokenStorage: TokenStorage {
    /// The same storage for code that cannot wait.
    public let blocking: Blocking

    /// The view of `service` of a keyring. The service is checked by the calls: at most 1,024 bytes of UTF-8,
    /// else `invalidArgument`.
    public init(_ secretService: SecretService, service: String) {
        blocking = Blocking(secretService: secretService, service: service)
    }

    /// The keyring this is a view of.
    public var secretService: SecretService { blocking.secretService }
    /// The service.
    public var service: String { blocking.service }
    /// `whenUnlocked` alone: that is what a keyring keeps. The file vault keeps the others.
    public var supportedPolicies: Set<AccessPolicy> { blocking.supportedPolicies }
    /// `whenUnlocked`.
    public var defaultPolicy: AccessPolicy { blocking.defaultPolicy }

    /// `locked` or `unlocked`, as the keyring is. Never asks the person. Throws `unavailable` when there is
    /// no libsecret, no bus, no service or no keyring.
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

    /// See ``TokenStorage/changes()``. Changes of other processes are told when they happen, also those of
    /// programs that are not TokenVault, as far as the Secret Service signals them: an item that was changed
    /// and changed again may be told once. ``TokenEvent/overflowed`` says that the service or the bus went
    /// away and came back.
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
    /// Runs `body`; its errors name the operation.
    func during<Value>(
        _ operation: String, _ body: () throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        do { return try body() } catch { throw error.during(operation) }
    }
}
