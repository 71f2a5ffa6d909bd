public import TokenVault

/// A subject whose storages answer through their blocking views: the whole contract holds for those too.
///
/// Its calls block their thread. Blocking is under test here; other code should not call it this way.
public struct ThroughBlockingView: ConformanceSubject {
    private let subject: any ConformanceSubject

    /// Creates a subject from the blocking views of `subject`.
    public init(_ subject: any ConformanceSubject) { self.subject = subject }

    /// The capabilities of the wrapped subject.
    public var capabilities: Set<ConformanceCapability> { subject.capabilities }
    /// The patience of the wrapped subject.
    public var patience: Duration { subject.patience }

    /// Returns the blocking view as an asynchronous storage.
    public func storage(service: String) async throws -> any TokenStorage {
        Storage(
            blocking: try await subject.blockingStorage(service: service),
            asynchronous: try await subject.storage(service: service))
    }

    /// See ``ConformanceSubject/blockingStorage(service:)``.
    public func blockingStorage(service: String) async throws -> any BlockingTokenStorage {
        try await subject.blockingStorage(service: service)
    }
    /// See ``ConformanceSubject/anotherHandle()``.
    public func anotherHandle() async throws -> any ConformanceSubject {
        ThroughBlockingView(try await subject.anotherHandle())
    }
    /// See ``ConformanceSubject/setLockState(_:)``.
    public func setLockState(_ lockState: LockState) async throws {
        try await subject.setLockState(lockState)
    }
    /// See ``ConformanceSubject/setDevice(isOriginal:)``.
    public func setDevice(isOriginal: Bool) async throws {
        try await subject.setDevice(isOriginal: isOriginal)
    }
    /// See ``ConformanceSubject/setPasscode(isSet:)``.
    public func setPasscode(isSet: Bool) async throws { try await subject.setPasscode(isSet: isSet) }
    /// See ``ConformanceSubject/close()``.
    public func close() async throws { try await subject.close() }

    private struct Storage: TokenStorage {
        let blocking: any BlockingTokenStorage
        // Changes have no blocking form.
        let asynchronous: any TokenStorage

        var service: String { blocking.service }
        var supportedPolicies: Set<AccessPolicy> { blocking.supportedPolicies }
        var defaultPolicy: AccessPolicy { blocking.defaultPolicy }
        func lockState() async throws(TokenStorageError) -> LockState { try blocking.lockState() }
        func secret(for key: TokenKey) async throws(TokenStorageError) -> Secret? {
            try blocking.secret(for: key)
        }
        func item(for key: TokenKey) async throws(TokenStorageError) -> TokenItem? {
            try blocking.item(for: key)
        }
        func metadata(for key: TokenKey) async throws(TokenStorageError) -> TokenMetadata? {
            try blocking.metadata(for: key)
        }
        func list(_ query: TokenQuery) async throws(TokenStorageError) -> TokenListing {
            try blocking.list(query)
        }
        func commit(_ changes: [TokenChange]) async throws(TokenStorageError) -> TokenCommit {
            try blocking.commit(changes)
        }
        func deleteAll() async throws(TokenStorageError) -> Int { try blocking.deleteAll() }
        func changes() -> TokenChanges { asynchronous.changes() }
    }
}
