/// A place where an auth SDK keeps its tokens: one *service*'s view of a keychain.
///
/// A read has three answers: a value, `nil` for what is known to be absent, or a thrown reason. *Locked,
/// broken or unreachable never reads as absent.* A store is an upsert and atomic; a replace keeps label,
/// attributes, policy and creation date unless they are given. A read that starts after an acknowledged
/// store sees it, in any process.
///
/// Reads of an open, unlocked storage run on the caller's thread and are bounded; what can wait (a
/// write, a lock, a prompt) runs elsewhere, and the caller's task waits. For code that cannot wait there
/// is ``BlockingTokenStorage``.
///
/// The convenience calls (`store(token:for:)`, `retrieve(for:)`, `delete(for:)`, `compareAndStore` …)
/// are built on these requirements.
public protocol TokenStorage: Sendable {
    /// The service that the keys belong to.
    var service: String { get }

    /// The policies whose promise this storage can keep. Another one is refused with
    /// ``TokenStorageError/Code/unsupportedPolicy``, never weakened.
    var supportedPolicies: Set<AccessPolicy> { get }

    /// The policy of a new item that names none.
    var defaultPolicy: AccessPolicy { get }

    /// What can be asked for now. Throws what makes the storage unusable (`unavailable`, `corrupt`,
    /// `closed` …).
    func lockState() async throws(TokenStorageError) -> LockState

    /// The secret stored under `key`, or `nil` when the key is known to be absent. Throws `locked` when
    /// the keys to tell or to read it are not held, `wrongDevice`, `corrupt`, `invalidKey` and what the
    /// system failed with.
    func secret(for key: TokenKey) async throws(TokenStorageError) -> Secret?

    /// The item stored under `key` with its secret, or `nil` when absent. Throws as ``secret(for:)``.
    func item(for key: TokenKey) async throws(TokenStorageError) -> TokenItem?

    /// What is known of `key` beside its secret, or `nil` when absent. Throws as ``secret(for:)``.
    func metadata(for key: TokenKey) async throws(TokenStorageError) -> TokenMetadata?

    /// The items that answer `query`, in the order of their keys' bytes, and how many cannot be shown
    /// now. Throws `locked` when nothing was unlocked yet.
    func list(_ query: TokenQuery) async throws(TokenStorageError) -> TokenListing

    /// Makes all of `changes` or none of them, durably, as one commit with one generation. No key may
    /// occur twice (`invalidArgument`).
    ///
    /// Throws `conflict` when an expectation does not hold, `notFound` for an update or rename of what
    /// is not there, `alreadyExists` when a rename's new key is taken, `unsupportedPolicy`, `tooLarge`,
    /// `noSpace`, `locked` when the keys of a changed item are not held, and `outcomeUnknown` with the
    /// generation to check when a deadline or a failure came after the write had begun.
    @discardableResult
    func commit(_ changes: [TokenChange]) async throws(TokenStorageError) -> TokenCommit

    /// Deletes every item of the service in one commit; returns how many there were. Throws `locked`
    /// or `wrongDevice`, having deleted nothing, when one of them may not be deleted now.
    @discardableResult
    func deleteAll() async throws(TokenStorageError) -> Int

    /// What changes from now on, for one reader. Each call makes a subscription of its own.
    func changes() -> TokenChanges
}

/// The same storage for code that cannot wait: every call runs on the caller's thread and returns when
/// it is done. Never call it from a task that others wait for; it blocks the thread.
///
/// No type is both a ``TokenStorage`` and a `BlockingTokenStorage`: Swift would take the blocking method
/// as the witness of the asynchronous one and block the cooperative pool without a word. Each local
/// backend has a `blocking` view instead. The methods answer and throw as those of ``TokenStorage``.
public protocol BlockingTokenStorage: Sendable {
    /// See ``TokenStorage/service``.
    var service: String { get }
    /// See ``TokenStorage/supportedPolicies``.
    var supportedPolicies: Set<AccessPolicy> { get }
    /// See ``TokenStorage/defaultPolicy``.
    var defaultPolicy: AccessPolicy { get }
    /// See ``TokenStorage/lockState()``.
    func lockState() throws(TokenStorageError) -> LockState
    /// See ``TokenStorage/secret(for:)``.
    func secret(for key: TokenKey) throws(TokenStorageError) -> Secret?
    /// See ``TokenStorage/item(for:)``.
    func item(for key: TokenKey) throws(TokenStorageError) -> TokenItem?
    /// See ``TokenStorage/metadata(for:)``.
    func metadata(for key: TokenKey) throws(TokenStorageError) -> TokenMetadata?
    /// See ``TokenStorage/list(_:)``.
    func list(_ query: TokenQuery) throws(TokenStorageError) -> TokenListing
    /// See ``TokenStorage/commit(_:)``.
    @discardableResult
    func commit(_ changes: [TokenChange]) throws(TokenStorageError) -> TokenCommit
    /// See ``TokenStorage/deleteAll()``.
    @discardableResult
    func deleteAll() throws(TokenStorageError) -> Int
}
