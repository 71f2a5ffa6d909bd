internal import Synchronization

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// A keychain in memory, shared by the storages of several services; it goes with the last of them.
///
/// It keeps every rule of ``TokenStorage``, so that tests of an SDK meet what a real vault does. What a
/// real vault goes through, it is told: ``setLockState(_:)``, ``setDevice(_:)``, ``setPasscode(isSet:)``,
/// ``close()``. It starts unlocked, on its own device, with a passcode. Policies are kept by checks here,
/// not by keys: nothing is protected from the process itself.
public final class InMemoryVault: TokenKeychain {
    /// The device a vault is on.
    public enum Device: Sendable, Hashable {
        /// The one it was made on.
        case original
        /// Another one, as after the vault was copied: items that stay on the original device are
        /// `wrongDevice`, and new ones that would stay here are `unsupportedPolicy`.
        case another
        /// Another one that the vault was made known to: items of the original device are
        /// `wrongDevice`, new ones can stay here.
        case anotherEnrolled

        var isOriginal: Bool { self == .original }
    }

    let state: Mutex<State>
    let hub = ChangeHub()
    let clock: @Sendable () -> Date

    /// An empty, unlocked vault. `clock` gives the time for `created` and `modified`.
    public init(clock: @escaping @Sendable () -> Date = { Date() }) {
        state = Mutex(State())
        self.clock = clock
    }

    deinit { hub.end() }

    /// The storage of `service` in this vault. An unusable service is `invalidArgument` in every call.
    public func storage(service: String) -> InMemoryTokenStorage {
        InMemoryTokenStorage(vault: self, service: service)
    }

    /// The services that have items, and how many items cannot be shown. Throws `locked`, `closed`.
    public func services() async throws(TokenStorageError) -> ServiceListing {
        let call = Validation(operation: "list", backend: Self.backend)
        return try withUnlockedState(call) { state in
            let items = Array(state.allItems)
            let shown = items.filter { state.refusal(of: $0) == nil }.map(\.metadata)
            return ServiceListing(of: TokenListing(items: shown, hidden: items.count - shown.count))
        }
    }

    /// Puts the vault into a lock state: `.locked` as after a reboot, `.afterFirstUnlock` as when locked
    /// again, `.unlocked`.
    public func setLockState(_ lockState: LockState) {
        state.withLock { $0.lockState = lockState }
    }

    /// Puts the vault on a device.
    public func setDevice(_ device: Device) {
        state.withLock { $0.device = device }
    }

    /// Says whether there is a passcode. Without one, when-passcode-set items are refused; taking it
    /// away destroys those that are there. The vault must be unlocked (`locked`); throws `closed`.
    public func setPasscode(isSet: Bool) throws(TokenStorageError) {
        try withState(Validation(operation: "setPasscode", backend: Self.backend)) {
            (state) throws(TokenStorageError) in
            guard state.lockState == .unlocked else {
                throw TokenStorageError(.locked, operation: "setPasscode", backend: Self.backend)
            }
            state.hasPasscode = isSet
            guard !isSet else { return }
            let destroyed = state.places.map { service, place in
                let items = state[place].values.filter {
                    $0.metadata.policy == .whenPasscodeSetThisDeviceOnly
                }
                return (service: service, place: place, keys: items.map(\.metadata.key).sorted())
            }
            guard destroyed.contains(where: { !$0.keys.isEmpty }) else { return }
            let generation = try state.nextGeneration("setPasscode")
            for (service, place, keys) in destroyed {
                for key in keys {
                    state[place][key] = nil
                    hub.publish(service: service.name, .deleted(key, generation))
                }
            }
        }
    }

    /// Forgets every item and ends every sequence of changes; later calls throw `closed`.
    public func close() {
        state.withLock { state in
            state.isClosed = true
            state.removeAll()
        }
        hub.end()
    }

    static let backend = "memory"
}
