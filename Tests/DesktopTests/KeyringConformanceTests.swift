import Glibc
import Testing
import TokenVault
import TokenVaultTesting

/// The real keyring is held against the whole contract.
@Suite struct KeyringConformanceTests {
    @Test(arguments: TokenStorageConformance.checks)
    func keepsTheContract(_ check: ConformanceCheck) async throws {
        let subject = KeyringSubject(try PrivateDesktop.withKeyring())
        if check.applies(to: subject), !isLong(check) { try await check.run(on: subject) }
    }

    @Test(arguments: TokenStorageConformance.checks)
    func theBlockingViewKeepsTheContract(_ check: ConformanceCheck) async throws {
        let subject = ThroughBlockingView(KeyringSubject(try PrivateDesktop.withKeyring()))
        if check.applies(to: subject), !isLong(check) { try await check.run(on: subject) }
    }

    private let areLimitsTried = getenv("TOKENVAULT_KEYRING_LIMITS") != nil

    /// Whether a check is left to `make keyring-limits`: the daemon writes all of its keyring for every
    /// single item, which takes minutes of its time for thousands of them.
    private func isLong(_ check: ConformanceCheck) -> Bool {
        !areLimitsTried
            && [
                "a reader that missed changes is told so, and of later ones",
                "a commit takes hundreds of changes",
            ]
            .contains(check.name)
    }

    @Test func theNamesOfLongChecksAreTheirNames() {
        #expect(
            TokenStorageConformance.checks.filter { isLong($0) }.count == 2
                || areLimitsTried)
    }

    @Test func aThousandItemsAreKept() throws {
        let desktop = try PrivateDesktop.withKeyring()
        let storage = desktop.service().storage(service: "app").blocking
        for number in 0..<(areLimitsTried ? 1_000 : 200) {
            try storage.store(token: "fake \(number)", for: "key \(number)")
        }
        try desktop.tell("restart_keyring")
        let items = try storage.list().items
        #expect(items.count == (areLimitsTried ? 1_000 : 200))
        for (number, _) in items.enumerated() {
            #expect(try storage.retrieve(for: "key \(number)") == "fake \(number)")
        }
    }

    @Test func everyCheckAppliesButThoseOfWhatAKeyringHasNot() throws {
        let subject = KeyringSubject(try PrivateDesktop.withKeyring())
        let unmet = TokenStorageConformance.checks.filter { !$0.applies(to: subject) }
        #expect(unmet.allSatisfy { !$0.requirements.isDisjoint(with: [.lockStates, .devices, .passcode]) })
        #expect(TokenStorageConformance.checks.count - unmet.count >= 100)
    }
}

/// A keyring of its own; each handle is a connection of its own.
final class KeyringSubject: ConformanceSubject {
    private let desktop: PrivateDesktop
    private let service: SecretService

    let capabilities: Set<ConformanceCapability> = [.blockingView, .anotherHandle, .closing]
    let patience: Duration = .seconds(60)

    init(_ desktop: PrivateDesktop) {
        self.desktop = desktop
        service = SecretService(configuration: desktop.configuration(timeout: .seconds(300)))
    }

    func storage(service name: String) -> any TokenStorage { service.storage(service: name) }
    func blockingStorage(service name: String) -> any BlockingTokenStorage {
        service.storage(service: name).blocking
    }
    func anotherHandle() -> any ConformanceSubject { KeyringSubject(desktop) }
    func close() { service.close() }
}
