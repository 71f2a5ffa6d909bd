/// A store that a ``StorageChooser`` may pick: a name, a probe for its presence, and a way to open a
/// service's storage in it.
///
/// A package with a backend of its own makes a candidate for it and adds it to the list at the right place.
public struct StorageCandidate: Sendable {
    /// A closure that checks for the store's presence. See ``init(name:probe:storage:)``.
    public typealias Probe = @Sendable () async throws(TokenStorageError) -> Presence
    /// A closure that opens the storage of a service. See ``init(name:probe:storage:)``.
    public typealias Factory =
        @Sendable (_ service: String) async throws(TokenStorageError) -> any TokenStorage

    /// The result of a probe.
    public enum Presence: Hashable, Sendable {
        /// The store is there.
        case present
        /// The store is missing and is made when it is picked. It has no items.
        case creatable
    }

    /// The name under which a choice is remembered: 1 to 200 bytes without control characters. It must never
    /// change.
    public let name: String
    let probe: Probe
    let storage: Factory

    /// Creates a candidate.
    ///
    /// `probe` checks for the store's presence, and never makes the store. When the store is missing and is
    /// not to be made, `probe` throws `unavailable` and no other error. Any other error means that *the store
    /// is there and cannot be used*, so that the store may hold items. The same holds for `unavailable` with
    /// one of these reasons, after which the store may return:
    /// ``TokenStorageError/Reason/vaultMissing(path:)``, ``TokenStorageError/Reason/serviceEnded(_:)`` or
    /// ``TokenStorageError/Reason/serviceDidNotStart(_:)``.
    ///
    /// `storage` opens or makes the store, unlocks it if needed, and returns the storage of a service. Any
    /// error that it throws, also `unavailable`, means that the store is there and cannot be used. Both
    /// closures must return in bounded time.
    public init(name: String, probe: @escaping Probe, storage: @escaping Factory) {
        self.name = name
        self.probe = probe
        self.storage = storage
    }
}

extension StorageCandidate {
    /// Returns whether `name` is valid for a candidate.
    static func isName(_ name: String) -> Bool {
        (1...ChoiceMemory.longestName).contains(name.utf8.count) && !NameRules.hasControlCharacters(name)
    }
}

/// The calls of a candidate. Their errors name the candidate.
extension StorageCandidate {
    /// Returns whether the store is present or can be created.
    func presence() async throws(TokenStorageError) -> Presence {
        try await naming(probe)
    }

    /// Opens the storage of a service.
    func open(_ service: String) async throws(TokenStorageError) -> any TokenStorage {
        try await naming { () async throws(TokenStorageError) in try await storage(service) }
    }

    /// Runs `body`, and sets this candidate as the backend of its errors.
    func naming<Value>(
        _ body: () async throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value {
        do {
            return try await body()
        } catch {
            var error = error
            error.backend = name
            throw error
        }
    }
}
