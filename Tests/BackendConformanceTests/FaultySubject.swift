import TokenVault
import TokenVaultTesting

/// A memory vault whose storages have one fault.
struct FaultySubject: ConformanceSubject {
    let memory = MemorySubject()
    /// What breaks a storage of the healthy vault.
    let fault: @Sendable (inout FaultyStorage) -> Void
    var renamesService: @Sendable (String) -> String = { $0 }
    /// Another vault for the blocking view and the second handle to be wrong about.
    var strayVault: InMemoryVault?

    init(
        renamesService: @escaping @Sendable (String) -> String = { $0 }, strayVault: InMemoryVault? = nil,
        fault: @escaping @Sendable (inout FaultyStorage) -> Void = { _ in }
    ) {
        self.fault = fault
        self.renamesService = renamesService
        self.strayVault = strayVault
    }

    static func with(_ fault: @escaping @Sendable (inout FaultyStorage) -> Void) -> FaultySubject {
        FaultySubject(fault: fault)
    }

    var capabilities: Set<ConformanceCapability> { memory.capabilities }
    // Finding a fault that swallows events takes this long. A slow machine cannot hide such a fault.
    var eventTimeout: Duration = .milliseconds(200)

    func storage(service: String) -> any TokenStorage {
        var storage = FaultyStorage(base: memory.storage(service: renamesService(service)))
        fault(&storage)
        return storage
    }
    func blockingStorage(service: String) -> any BlockingTokenStorage {
        strayVault?.storage(service: service).blocking ?? memory.blockingStorage(service: service)
    }
    func anotherHandle() -> any ConformanceSubject { self }
    func setLockState(_ lockState: LockState) { memory.setLockState(lockState) }
    func setDevice(isOriginal: Bool) { memory.setDevice(isOriginal: isOriginal) }
    func setPasscode(isSet: Bool) throws { if strayVault == nil { try memory.setPasscode(isSet: isSet) } }
    func close() { if strayVault == nil { memory.close() } }
}
