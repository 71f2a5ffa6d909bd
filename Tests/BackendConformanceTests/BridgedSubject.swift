import Dispatch
import TokenVault
import TokenVaultTesting

/// A backend as another package writes one: a blocking storage, and a bridge that says where its calls run.
struct BridgedSubject: ConformanceSubject {
    let memory = MemorySubject()
    let queue = CallQueue()

    var capabilities: Set<ConformanceCapability> { memory.capabilities }

    func storage(service: String) -> any TokenStorage {
        BridgedStorage(
            blocking: QueuedStorage(base: memory.vault.storage(service: service).blocking, queue: queue),
            queue: queue, memory: memory.vault.storage(service: service))
    }
    func blockingStorage(service: String) -> any BlockingTokenStorage {
        memory.blockingStorage(service: service)
    }
    func anotherHandle() -> any ConformanceSubject { self }
    func setLockState(_ lockState: LockState) { memory.setLockState(lockState) }
    func setDevice(isOriginal: Bool) { memory.setDevice(isOriginal: isOriginal) }
    func setPasscode(isSet: Bool) throws { try memory.setPasscode(isSet: isSet) }
    func close() { memory.close() }
}

/// Where the calls run, so that one that runs elsewhere is noticed.
final class CallQueue: Sendable {
    private let queue = DispatchQueue(label: "blocking calls", attributes: .concurrent)
    private let isHere = DispatchSpecificKey<Bool>()

    init() { queue.setSpecific(key: isHere, value: true) }

    var isCurrent: Bool { DispatchQueue.getSpecific(key: isHere) == true }
    func run(_ job: @escaping @Sendable () -> Void) { queue.async(execute: job) }
}

/// A blocking storage that works on its queue alone.
struct QueuedStorage: BlockingTokenStorage {
    let base: InMemoryTokenStorage.Blocking
    let queue: CallQueue

    var service: String { base.service }
    var supportedPolicies: Set<AccessPolicy> { base.supportedPolicies }
    var defaultPolicy: AccessPolicy { base.defaultPolicy }

    func lockState() throws(TokenStorageError) -> LockState { try checked().lockState() }
    func secret(for key: TokenKey) throws(TokenStorageError) -> Secret? { try checked().secret(for: key) }
    func item(for key: TokenKey) throws(TokenStorageError) -> TokenItem? { try checked().item(for: key) }
    func metadata(for key: TokenKey) throws(TokenStorageError) -> TokenMetadata? {
        try checked().metadata(for: key)
    }
    func list(_ query: TokenQuery) throws(TokenStorageError) -> TokenListing { try checked().list(query) }
    func commit(_ changes: [TokenChange]) throws(TokenStorageError) -> TokenCommit {
        try checked().commit(changes)
    }
    func deleteAll() throws(TokenStorageError) -> Int { try checked().deleteAll() }

    private func checked() throws(TokenStorageError) -> InMemoryTokenStorage.Blocking {
        guard queue.isCurrent else {
            throw TokenStorageError(
                .internalError, operation: "call on the caller's thread", backend: "queued")
        }
        return base
    }
}

/// The bridge of ``QueuedStorage``.
struct BridgedStorage: BridgedTokenStorage {
    let blocking: QueuedStorage
    let queue: CallQueue
    let memory: InMemoryTokenStorage

    func run<Value: Sendable>(
        _ call: StorageCall, _ body: @escaping @Sendable (QueuedStorage) throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value {
        if call.kind == .write, Task.isCancelled {
            throw TokenStorageError(.cancelled, operation: call.operation, backend: "queued")
        }
        let result = await withCheckedContinuation { continuation in
            queue.run { [blocking] in
                continuation.resume(
                    returning: Result { () throws(TokenStorageError) in try body(blocking) })
            }
        }
        return try result.get()
    }

    func changes() -> TokenChanges { memory.changes() }
}
