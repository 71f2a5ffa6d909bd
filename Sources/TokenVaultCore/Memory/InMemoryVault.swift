internal import Synchronization

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// A keychain in memory, shared by the storages of several services. It is released with the last of them.
///
/// It keeps every rule of ``TokenStorage``, so that tests of an SDK see the behaviour of a real vault. Tests
/// set the state of the vault with ``setLockState(_:)``, ``setDevice(_:)``, ``setPasscode(isSet:)`` and
/// ``close()``. It starts unlocked, on its own device, with a passcode. Checks enforce the policies here, not
/// keys: nothing is protected from the process itself.
public final class InMemoryVault: TokenKeychain {
    /// The device that a vault is on.
    public enum Device: Sendable, Hashable {
        /// The device on which the vault was made.
        case original
        /// Another device, as after the vault was copied. Items that stay on the original device are
        /// `wrongDevice`. New items that would stay on this device are `unsupportedPolicy`.
        case another
        /// Another device, enrolled in the vault. Items that stay on the original device are `wrongDevice`;
        /// new items can stay on this device.
        case anotherEnrolled

        var isOriginal: Bool { self == .original }
    }

    let state: Mutex<State>
    let hub = ChangeHub()
    let clock: @Sendable () -> Date

    /// Creates an empty, unlocked vault. `clock` gives the time for `created` and `modified`.
    public init(clock: @escaping @Sendable () -> Date = { Date() }) {
        state = Mutex(State())
        self.clock = clock
    }

    deinit { hub.end() }

    /// Returns the storage of `service` in this vault. With an unusable service every call throws
    /// `invalidArgument`.
    public func storage(service: String) -> InMemoryTokenStorage {
        InMemoryTokenStorage(vault: self, service: service)
    }

    /// Returns the services that have items, and the number of items that cannot be shown. Throws `locked`,
    /// `closed`.
    public func services() async throws(TokenStorageError) -> ServiceListing {
        let call = Validation(operation: "list", backend: Self.backend)
        return try withUnlockedState(call) { state in
            let items = Array(state.allItems)
            let shown = items.filter { state.refusal(of: $0) == nil }.map(\.metadata)
            return ServiceListing(of: TokenListing(items: shown, hidden: items.count - shown.count))
        }
    }

    /// Sets the lock state: `.locked` as after a reboot, `.afterFirstUnlock` as after locking again, or
    /// `.unlocked`.
    public func setLockState(_ lockState: LockState) {
        state.withLock { $0.lockState = lockState }
    }

    /// Moves the vault to a device.
    public func setDevice(_ device: Device) {
        state.withLock { $0.device = device }
    }

    /// Sets or removes the passcode. Without one, when-passcode-set items are rejected; removing it destroys
    /// the existing ones. Throws `locked` unless the vault is unlocked, and `closed`.
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

    /// Removes every item and ends every sequence of changes. Later calls throw `closed`.
    public func close() {
        state.withLock { state in
            state.isClosed = true
            state.removeAll()
        }
        hub.end()
    }

    static let backend = "memory"
}
