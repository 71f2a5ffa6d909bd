/// A store that a ``StorageChooser`` may pick: a name, a way to ask whether it is there, and a way to a
/// service's storage in it.
///
/// A package that brings a backend makes a candidate of it and puts it where it belongs in the list.
public struct StorageCandidate: Sendable {
    /// What asks whether the store is there. See ``init(name:probe:storage:)``.
    public typealias Probe = @Sendable () async throws(TokenStorageError) -> Presence
    /// What gives the storage of a service. See ``init(name:probe:storage:)``.
    public typealias Factory =
        @Sendable (_ service: String) async throws(TokenStorageError) -> any TokenStorage

    /// What a probe found.
    public enum Presence: Hashable, Sendable {
        /// The store is there.
        case present
        /// It is not, and is made when it is picked: it has no items.
        case creatable
    }

    /// The name, by which a choice is remembered: 1 to 200 bytes without control characters, never to be
    /// changed.
    public let name: String
    let probe: Probe
    let storage: Factory

    /// A candidate.
    ///
    /// `probe` says whether the store is there, and makes none. It throws `unavailable` when it is not there
    /// and not to be made, and nothing else for that: *any other error says that it is there and cannot be used*, so that items may be in it. So does `unavailable` with the reason
    /// ``TokenStorageError/Reason/vaultMissing(path:)``, ``TokenStorageError/Reason/serviceEnded(_:)`` or
    /// ``TokenStorageError/Reason/serviceDidNotStart(_:)``: the store may return.
    /// `storage` opens or makes it, unlocks it if need be, and gives the storage of a service; whatever it
    /// throws, `unavailable` too, says that the store is there and cannot be used. Both are bounded in time.
    public init(name: String, probe: @escaping Probe, storage: @escaping Factory) {
        self.name = name
        self.probe = probe
        self.storage = storage
    }
}

extension StorageCandidate {
    /// Whether a candidate can have this name.
    static func isName(_ name: String) -> Bool {
        (1...ChoiceMemory.longestName).contains(name.utf8.count) && !NameRules.hasControlCharacters(name)
    }
}
