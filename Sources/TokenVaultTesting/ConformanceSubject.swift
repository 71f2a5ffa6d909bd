public import TokenVault

/// A backend under test: one store, shared by the storages of several services. The store is empty and
/// unlocked when it is made.
///
/// Only ``storage(service:)`` is required. ``capabilities`` names the optional abilities of a backend. Each
/// capability requires the method that its documentation names.
public protocol ConformanceSubject: Sendable {
    /// Returns the storage of `service`. Called again after every change of state, so that a subject may open
    /// its store again and return another object.
    func storage(service: String) async throws -> any TokenStorage

    /// The checks that are possible beyond the storage's own calls. Default: none.
    var capabilities: Set<ConformanceCapability> { get }

    /// The time that a check waits for a required event before it fails. Default: ten seconds.
    var eventTimeout: Duration { get }

    /// Returns the blocking view of ``storage(service:)``. For ``ConformanceCapability/blockingView``.
    func blockingStorage(service: String) async throws -> any BlockingTokenStorage

    /// Opens the same store once more, as another process would. For ``ConformanceCapability/anotherHandle``.
    func anotherHandle() async throws -> any ConformanceSubject

    /// Sets the lock state of the store. For ``ConformanceCapability/lockStates``.
    func setLockState(_ lockState: LockState) async throws

    /// Moves a copy of the store to another device that never had it, or returns to the original on its own
    /// device. For ``ConformanceCapability/devices``.
    func setDevice(isOriginal: Bool) async throws

    /// Sets or removes the passcode. The store is unlocked before and after. For
    /// ``ConformanceCapability/passcode``.
    func setPasscode(isSet: Bool) async throws

    /// Closes the store permanently. ``storage(service:)`` then returns a closed storage. For
    /// ``ConformanceCapability/closing``.
    func close() async throws
}

/// An ability of a subject beyond the calls of its storages.
public enum ConformanceCapability: String, CaseIterable, Hashable, Sendable {
    /// There is a blocking view: ``ConformanceSubject/blockingStorage(service:)``.
    case blockingView
    /// A second opening shares the store: ``ConformanceSubject/anotherHandle()``.
    case anotherHandle
    /// Lock states can be set: ``ConformanceSubject/setLockState(_:)``.
    case lockStates
    /// The store can move to another device: ``ConformanceSubject/setDevice(isOriginal:)``.
    case devices
    /// The passcode can be removed: ``ConformanceSubject/setPasscode(isSet:)``.
    case passcode
    /// The store can be closed: ``ConformanceSubject/close()``.
    case closing
}

extension ConformanceSubject {
    /// None.
    public var capabilities: Set<ConformanceCapability> { [] }
    /// Ten seconds.
    public var eventTimeout: Duration { .seconds(10) }

    /// Throws, because the subject has no blocking view.
    public func blockingStorage(service: String) async throws -> any BlockingTokenStorage {
        throw ConformanceFailure.missing(.blockingView)
    }
    /// Throws, because the subject has no second handle.
    public func anotherHandle() async throws -> any ConformanceSubject {
        throw ConformanceFailure.missing(.anotherHandle)
    }
    /// Throws, because the subject's lock state cannot be set.
    public func setLockState(_ lockState: LockState) async throws {
        throw ConformanceFailure.missing(.lockStates)
    }
    /// Throws, because the subject cannot move to another device.
    public func setDevice(isOriginal: Bool) async throws { throw ConformanceFailure.missing(.devices) }
    /// Throws, because the subject has no passcode to remove.
    public func setPasscode(isSet: Bool) async throws { throw ConformanceFailure.missing(.passcode) }
    /// Throws, because the subject cannot be closed.
    public func close() async throws { throw ConformanceFailure.missing(.closing) }
}
