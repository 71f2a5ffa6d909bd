public import TokenVault

/// A subject whose storages answer through their blocking views: the whole contract holds for those too.
///
/// Its calls block their thread. Blocking is under test here; other code should not call it this way.
public struct ThroughBlockingView: ConformanceSubject {
    private let subject: any ConformanceSubject

    /// Creates a subject from the blocking views of `subject`.
    public init(_ subject: any ConformanceSubject) { self.subject = subject }

    public var capabilities: Set<ConformanceCapability> { subject.capabilities }
    public var eventTimeout: Duration { subject.eventTimeout }

    public func storage(service: String) async throws -> any TokenStorage {
        bridged(
            try await subject.blockingStorage(service: service), try await subject.storage(service: service))
    }

    private func bridged(
        _ blocking: some BlockingTokenStorage, _ asynchronous: any TokenStorage
    ) -> any TokenStorage {
        Storage(blocking: blocking, asynchronous: asynchronous)
    }

    public func blockingStorage(service: String) async throws -> any BlockingTokenStorage {
        try await subject.blockingStorage(service: service)
    }
    public func anotherHandle() async throws -> any ConformanceSubject {
        ThroughBlockingView(try await subject.anotherHandle())
    }
    public func setLockState(_ lockState: LockState) async throws {
        try await subject.setLockState(lockState)
    }
    public func setDevice(isOriginal: Bool) async throws {
        try await subject.setDevice(isOriginal: isOriginal)
    }
    public func setPasscode(isSet: Bool) async throws { try await subject.setPasscode(isSet: isSet) }
    public func close() async throws { try await subject.close() }

    private struct Storage<Blocking: BlockingTokenStorage>: BridgedTokenStorage {
        let blocking: Blocking
        // Changes have no blocking form.
        let asynchronous: any TokenStorage

        func run<Value: Sendable>(
            _ call: StorageCall,
            _ body: @escaping @Sendable (Blocking) throws(TokenStorageError) -> Value
        ) async throws(TokenStorageError) -> Value {
            try body(blocking)
        }
        func changes() -> TokenChanges { asynchronous.changes() }
    }
}
