public import TokenVault

/// A backend under test: one store, empty and unlocked when it is made, that storages of several
/// services share.
///
/// Only ``storage(service:)`` is required. What else a backend can do is named in ``capabilities``, and
/// each capability asks for the method that its documentation names.
public protocol ConformanceSubject: Sendable {
    /// The storage of `service`. Called again after every change of state, so a subject may open its
    /// store anew and answer with another object.
    func storage(service: String) async throws -> any TokenStorage

    /// What can be checked beyond the storage's own calls. None by default.
    var capabilities: Set<ConformanceCapability> { get }

    /// How long a check waits for an event that must come, before it fails. Ten seconds by default.
    var patience: Duration { get }

    /// The blocking view of ``storage(service:)``. For ``ConformanceCapability/blockingView``.
    func blockingStorage(service: String) async throws -> any BlockingTokenStorage

    /// The same store opened once more, as by another process. For
    /// ``ConformanceCapability/anotherHandle``.
    func anotherHandle() async throws -> any ConformanceSubject

    /// Puts the store into a lock state. For ``ConformanceCapability/lockStates``.
    func setLockState(_ lockState: LockState) async throws

    /// Brings a copy of the store to another device that has never seen it, or goes back to the
    /// original on its own device. For ``ConformanceCapability/devices``.
    func setDevice(isOriginal: Bool) async throws

    /// Sets or takes away the passcode; unlocked before and after. For
    /// ``ConformanceCapability/passcode``.
    func setPasscode(isSet: Bool) async throws

    /// Closes the store for good. ``storage(service:)`` still answers, with a storage that is closed.
    /// For ``ConformanceCapability/closing``.
    func close() async throws
}

/// What a subject can do beyond the calls of its storages.
public enum ConformanceCapability: String, CaseIterable, Hashable, Sendable {
    /// There is a blocking view: ``ConformanceSubject/blockingStorage(service:)``.
    case blockingView
    /// A second opening shares the store: ``ConformanceSubject/anotherHandle()``.
    case anotherHandle
    /// Lock states can be set: ``ConformanceSubject/setLockState(_:)``.
    case lockStates
    /// The store can move to another device: ``ConformanceSubject/setDevice(isOriginal:)``.
    case devices
    /// The passcode can be taken away: ``ConformanceSubject/setPasscode(isSet:)``.
    case passcode
    /// The store can be closed: ``ConformanceSubject/close()``.
    case closing
}

extension ConformanceSubject {
    /// None.
    public var capabilities: Set<ConformanceCapability> { [] }
    /// Ten seconds.
    public var patience: Duration { .seconds(10) }

    /// Throws: the subject has no blocking view.
    public func blockingStorage(service: String) async throws -> any BlockingTokenStorage {
        throw ConformanceFailure.missing(.blockingView)
    }
    /// Throws: the subject has no second handle.
    public func anotherHandle() async throws -> any ConformanceSubject {
        throw ConformanceFailure.missing(.anotherHandle)
    }
    /// Throws: the subject's lock state cannot be set.
    public func setLockState(_ lockState: LockState) async throws {
        throw ConformanceFailure.missing(.lockStates)
    }
    /// Throws: the subject cannot move to another device.
    public func setDevice(isOriginal: Bool) async throws { throw ConformanceFailure.missing(.devices) }
    /// Throws: the subject has no passcode to take away.
    public func setPasscode(isSet: Bool) async throws { throw ConformanceFailure.missing(.passcode) }
    /// Throws: the subject cannot be closed.
    public func close() async throws { throw ConformanceFailure.missing(.closing) }
}
