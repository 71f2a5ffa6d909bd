import TokenVault
import TokenVaultTesting

/// The in-memory vault, which can do everything that a check may ask for.
struct MemorySubject: ConformanceSubject {
    let vault = InMemoryVault()

    let capabilities = Set(ConformanceCapability.allCases)

    func storage(service: String) -> any TokenStorage { vault.storage(service: service) }
    func blockingStorage(service: String) -> any BlockingTokenStorage {
        vault.storage(service: service).blocking
    }
    // Memory has one handle, so a copy of the subject serves as the second handle of the same vault.
    func anotherHandle() -> any ConformanceSubject { self }
    func setLockState(_ lockState: LockState) { vault.setLockState(lockState) }
    func setDevice(isOriginal: Bool) { vault.setDevice(isOriginal ? .original : .another) }
    func setPasscode(isSet: Bool) throws { try vault.setPasscode(isSet: isSet) }
    func close() { vault.close() }
}
