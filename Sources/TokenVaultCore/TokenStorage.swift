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
///
/// ## Implementation guidance
///
/// This section is for authors of a backend. The module `TokenVaultTesting` checks most of it: a backend is
/// ready when every check of `TokenStorageConformance` that applies passes.
///
/// ### Requirements
///
/// Every requirement is essential, and none has a default implementation. Implement ``BlockingTokenStorage``,
/// and put a ``BridgedTokenStorage`` around it. The bridge implements everything but ``changes()``, and
/// ``BridgedTokenStorage/run(_:_:)`` says where a call runs. A backend without a blocking form implements
/// this protocol itself. No type conforms to both this protocol and ``BlockingTokenStorage``: see there.
///
/// Do not implement the convenience calls: they follow from the requirements. Offer a ``StorageCandidate``,
/// so that a ``StorageChooser`` can pick the backend.
///
/// ### Absent, locked and broken
///
/// An app that finds no token signs its user out. So return `nil` only when you know that the item does not
/// exist. In all other cases, throw the code that says what is wrong:
///
/// - ``TokenStorageError/Code/locked``: the keys are not held. An unlock helps.
/// - ``TokenStorageError/Code/wrongDevice`` and ``TokenStorageError/Code/notPermitted``: another device or
///   another unlock method can read the item.
/// - ``TokenStorageError/Code/corrupt``: stored bytes fail their check.
/// - ``TokenStorageError/Code/unavailable``: the store or its service is missing or cannot be reached.
///
/// A list counts the items that it cannot show in ``TokenListing/hidden``. An error names the backend and the
/// operation. For other details, use the reason ``TokenStorageError/Reason/other(explanation:advice:)``.
///
/// ### Commits
///
/// - Check the documented limits of keys, secrets and details first: `invalidKey`, `invalidArgument`,
///   `tooLarge`. Compare names byte by byte.
/// - A commit makes all of its changes or none. No reader sees a part of a commit or of a secret, in any
///   process.
/// - Return when the commit is durable. A read that starts after that sees the commit.
/// - Most codes promise that nothing was changed. When a write may have happened, throw
///   ``TokenStorageError/Code/outcomeUnknown`` with the generation that the write has if it happened.
/// - A conflict has the present generation of the key, or `nil` when the key is absent.
/// - Refuse a policy that is not in ``supportedPolicies``, and never weaken one.
///
/// ### Generations
///
/// Each commit that changes something has one generation. Generations grow and stay below 2^53. They never
/// repeat for a key, even after a delete, a ``deleteAll()`` or a restart. So keep the last generation in a
/// place that a deletion leaves alone.
///
/// ### Tasks and threads
///
/// - Many tasks, threads and processes call a storage at once. Compare and write under one lock.
/// - A call may run on the caller's thread only if it takes bounded time. Never block the cooperative pool.
/// - A write in a cancelled task happens as a whole, or throws ``TokenStorageError/Code/cancelled`` and
///   changes nothing. A read in a cancelled task never returns `nil` for an item that exists.
/// - After the storage is closed, every call throws ``TokenStorageError/Code/closed``.
///
/// ### Observation
///
/// Each call of ``changes()`` is a new subscription. A ``ChangeHub`` keeps the subscriptions of a store.
/// Publish each change after its commit is durable, in the order of generations. Changes of other processes
/// may follow with the next read. Publish ``TokenEvent/overflowed`` when changes may have been missed.
///
/// ### Redaction
///
/// No description, error or log line has a secret, a key, a label or an attribute. Keep secrets in
/// ``Secret``, which is redacted and wiped, and wipe every other copy.
///
/// ### New requirements
///
/// Before version 1.0, a minor release may add a requirement. The requirement has a default implementation,
/// or the CHANGELOG names it. New codes and reasons may come with any minor release. A `switch` over codes
/// needs a `default`, and a `switch` over reasons needs `@unknown default`.
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
