/// A storage for the tokens of an auth SDK: one *service*'s view of a keychain.
///
/// A read has three outcomes: a value, `nil` for a key that is known to be absent, or a thrown error. A
/// *locked, damaged or unreachable* item or storage *never reads as absent*. A store is an atomic upsert. A
/// replace keeps label, attributes, policy and creation date unless they are given. A read that starts after
/// an acknowledged store sees it, in any process.
///
/// Reads of an open, unlocked storage run on the caller's thread and take bounded time. Calls that can wait
/// (for a write, a lock, a prompt) run on another thread while the caller's task waits. For code that cannot
/// wait there is ``BlockingTokenStorage``.
///
/// The convenience calls (`store(token:for:)`, `retrieve(for:)`, `delete(for:)`, `compareAndStore` …) are
/// built on these requirements.
public protocol TokenStorage: Sendable {
    /// The service that the keys belong to.
    var service: String { get }

    /// The policies that this storage can enforce. It rejects any other policy with
    /// ``TokenStorageError/Code/unsupportedPolicy`` and never weakens one.
    var supportedPolicies: Set<AccessPolicy> { get }

    /// The policy of a new item that is stored without one.
    var defaultPolicy: AccessPolicy { get }

    /// Returns the lock state. Throws when the storage is unusable (`unavailable`, `corrupt`, `closed` …).
    func lockState() async throws(TokenStorageError) -> LockState

    /// Returns the secret stored under `key`, or `nil` when the key is known to be absent. Throws `locked`
    /// when the storage does not hold the decryption keys to find or read the item. Also throws
    /// `wrongDevice`, `corrupt`, `invalidKey` and errors of the system.
    func secret(for key: TokenKey) async throws(TokenStorageError) -> Secret?

    /// Returns the item stored under `key` with its secret, or `nil` when absent. Throws as ``secret(for:)``.
    func item(for key: TokenKey) async throws(TokenStorageError) -> TokenItem?

    /// Returns the metadata of `key`, or `nil` when absent. Throws as ``secret(for:)``.
    func metadata(for key: TokenKey) async throws(TokenStorageError) -> TokenMetadata?

    /// Returns the items that match `query`, in the order of their keys' bytes, and the number of items that
    /// cannot be shown now. Throws `locked` when nothing was unlocked yet.
    func list(_ query: TokenQuery) async throws(TokenStorageError) -> TokenListing

    /// Makes all of `changes` or none of them, durably, as one commit with one generation. No key may occur
    /// twice (`invalidArgument`).
    ///
    /// Throws:
    /// - `conflict` when an expectation does not hold;
    /// - `notFound` for an update or rename of an absent key;
    /// - `alreadyExists` when a rename's new key is taken;
    /// - `unsupportedPolicy`, `tooLarge`, `noSpace`;
    /// - `locked` when the storage does not hold the decryption keys of a changed item;
    /// - `outcomeUnknown` when a deadline or a failure came after the write had begun, with the generation to
    ///   check.
    @discardableResult
    func commit(_ changes: [TokenChange]) async throws(TokenStorageError) -> TokenCommit

    /// Deletes every item of the service in one commit and returns their number. Throws `locked` or
    /// `wrongDevice`, without deleting anything, when an item may not be deleted now.
    @discardableResult
    func deleteAll() async throws(TokenStorageError) -> Int

    /// Returns the changes from now on, for one reader. Each call makes a new subscription.
    func changes() -> TokenChanges
}

/// The same storage for code that cannot wait: every call runs on the caller's thread and returns when it is
/// done. A call blocks its thread, so do not make it from a task that other tasks wait for.
///
/// No type is both a ``TokenStorage`` and a `BlockingTokenStorage`. Swift would take the blocking method as
/// the witness of the asynchronous one, and silently block the cooperative pool. A backend is a blocking
/// storage and a ``BridgedTokenStorage`` around it. The methods return and throw as those of ``TokenStorage``.
public protocol BlockingTokenStorage: Sendable {
    /// The service that the keys belong to.
    var service: String { get }

    /// The policies that this storage can enforce.
    var supportedPolicies: Set<AccessPolicy> { get }

    /// The policy of a new item that is stored without one.
    var defaultPolicy: AccessPolicy { get }

    /// Returns the lock state.
    func lockState() throws(TokenStorageError) -> LockState

    /// Returns the secret stored under `key`, or `nil` when the key is known to be absent.
    func secret(for key: TokenKey) throws(TokenStorageError) -> Secret?

    /// Returns the item stored under `key` with its secret, or `nil` when absent.
    func item(for key: TokenKey) throws(TokenStorageError) -> TokenItem?

    /// Returns the metadata of `key`, or `nil` when absent.
    func metadata(for key: TokenKey) throws(TokenStorageError) -> TokenMetadata?

    /// Returns the items that match `query`, in the order of their keys' bytes.
    func list(_ query: TokenQuery) throws(TokenStorageError) -> TokenListing

    /// Makes all of `changes` or none of them, durably, as one commit.
    @discardableResult
    func commit(_ changes: [TokenChange]) throws(TokenStorageError) -> TokenCommit

    /// Deletes every item of the service in one commit and returns their number.
    @discardableResult
    func deleteAll() throws(TokenStorageError) -> Int
}
