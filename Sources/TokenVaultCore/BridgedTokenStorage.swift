/// The asynchronous side of a blocking storage. A backend implements ``BlockingTokenStorage`` and wraps it in
/// a type that says where its calls run: ``run(_:_:)``. Every other call of ``TokenStorage`` but
/// ``TokenStorage/changes()`` follows from that.
///
/// ```swift
/// struct RemoteTokenStorage: BridgedTokenStorage {
///     let blocking: RemoteBlockingStorage
///     let queue: DispatchQueue
///
///     func run<Value: Sendable>(
///         _ call: StorageCall,
///         _ body: @escaping @Sendable (RemoteBlockingStorage) throws(TokenStorageError) -> Value
///     ) async throws(TokenStorageError) -> Value {
///         let result = await withCheckedContinuation { continuation in
///             queue.async {
///                 continuation.resume(
///                     returning: Result { () throws(TokenStorageError) in try body(blocking) })
///             }
///         }
///         return try result.get()
///     }
///
///     func changes() -> TokenChanges { … }
/// }
/// ```
///
/// A type that also conforms to ``BlockingTokenStorage`` would block the cooperative pool: see there.
public protocol BridgedTokenStorage: TokenStorage {
    /// The type of the blocking view.
    associatedtype Blocking: BlockingTokenStorage

    /// The same storage for blocking code.
    var blocking: Blocking { get }

    /// Runs `body` with the blocking view where it may wait, and returns its result. `call` says what `body`
    /// does. Throws the errors of `body`. May throw `cancelled` when the task was cancelled before the call
    /// began.
    func run<Value: Sendable>(
        _ call: StorageCall, _ body: @escaping @Sendable (Blocking) throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value
}

/// A call of a storage, for the decision where it runs.
public struct StorageCall: Hashable, Sendable {
    /// The kinds of calls, by the time that they can take.
    public enum Kind: Hashable, Sendable {
        /// Asks for the lock state.
        case lockState
        /// Reads one item.
        case read
        /// Reads all items of the service.
        case list
        /// Changes items.
        case write
    }

    /// The name of the operation, for errors: "retrieve", "delete" …
    public let operation: String
    /// The kind of the call.
    public let kind: Kind

    /// Creates the call of an operation.
    public init(_ operation: String, _ kind: Kind) { (self.operation, self.kind) = (operation, kind) }

    @usableFromInline static let lockState = StorageCall("status", .lockState)
    @usableFromInline static let secret = StorageCall("retrieve", .read)
    @usableFromInline static let metadata = StorageCall("info", .read)
    @usableFromInline static let list = StorageCall("list", .list)
    @usableFromInline static let deleteAll = StorageCall("delete", .write)
    @usableFromInline static func commit(_ changes: [TokenChange]) -> StorageCall {
        StorageCall(CommitRules.operation(changes), .write)
    }
}

extension BridgedTokenStorage {
    /// The service of the blocking view.
    @inlinable public var service: String { blocking.service }

    /// The policies of the blocking view.
    @inlinable public var supportedPolicies: Set<AccessPolicy> { blocking.supportedPolicies }

    /// The default policy of the blocking view.
    @inlinable public var defaultPolicy: AccessPolicy { blocking.defaultPolicy }

    /// Returns the lock state of the blocking view.
    @inlinable public func lockState() async throws(TokenStorageError) -> LockState {
        try await run(.lockState) { (blocking) throws(TokenStorageError) in try blocking.lockState() }
    }

    /// Returns the secret under `key` from the blocking view.
    @inlinable public func secret(for key: TokenKey) async throws(TokenStorageError) -> Secret? {
        try await run(.secret) { (blocking) throws(TokenStorageError) in try blocking.secret(for: key) }
    }

    /// Returns the item under `key` from the blocking view.
    @inlinable public func item(for key: TokenKey) async throws(TokenStorageError) -> TokenItem? {
        try await run(.secret) { (blocking) throws(TokenStorageError) in try blocking.item(for: key) }
    }

    /// Returns the metadata of `key` from the blocking view.
    @inlinable public func metadata(for key: TokenKey) async throws(TokenStorageError) -> TokenMetadata? {
        try await run(.metadata) { (blocking) throws(TokenStorageError) in try blocking.metadata(for: key) }
    }

    /// Returns the items that match `query` from the blocking view.
    @inlinable public func list(_ query: TokenQuery) async throws(TokenStorageError) -> TokenListing {
        try await run(.list) { (blocking) throws(TokenStorageError) in try blocking.list(query) }
    }

    /// Commits `changes` through the blocking view.
    @discardableResult
    @inlinable public func commit(_ changes: [TokenChange]) async throws(TokenStorageError) -> TokenCommit {
        try await run(.commit(changes)) { (blocking) throws(TokenStorageError) in
            try blocking.commit(changes)
        }
    }

    /// Deletes every item of the service through the blocking view and returns their number.
    @discardableResult
    @inlinable public func deleteAll() async throws(TokenStorageError) -> Int {
        try await run(.deleteAll) { (blocking) throws(TokenStorageError) in try blocking.deleteAll() }
    }
}
