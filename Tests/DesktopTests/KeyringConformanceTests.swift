import Glibc
import TestLanes
import Testing
import TokenVault
import TokenVaultTesting

/// The real keyring is held against the whole contract.
@Suite(.tags(.desktop), .from(.usual)) struct KeyringConformanceTests {
    @Test(arguments: TokenStorageConformance.checks)
    func keepsTheContract(_ check: ConformanceCheck) async throws {
        let subject = KeyringSubject(try desktop(for: check))
        if check.applies(to: subject) { try await check.run(on: subject) }
    }

    @Test(arguments: TokenStorageConformance.checks)
    func theBlockingViewKeepsTheContract(_ check: ConformanceCheck) async throws {
        let subject = ThroughBlockingView(KeyringSubject(try desktop(for: check)))
        if check.applies(to: subject) { try await check.run(on: subject) }
    }

    /// The daemon writes all of a keyring for every single item: minutes for a check of thousands. That one
    /// uses the daemon's keyring in memory, and the one on the disk in `make keyring-limits`.
    private func desktop(for check: ConformanceCheck) throws -> PrivateDesktop {
        let desktop = try PrivateDesktop.withKeyring()
        if check.name == Self.ofThousands, getenv("TOKENVAULT_KEYRING_LIMITS") == nil {
            try desktop.tell("set_default", "/org/freedesktop/secrets/collection/session")
        }
        return desktop
    }

    private static let ofThousands = "a reader that missed changes is told so, and of later ones"

    @Test func theCheckOfThousandsHasThatName() {
        #expect(TokenStorageConformance.checks.contains { $0.name == Self.ofThousands })
    }

    @Test func aThousandItemsAreKept() throws {
        let desktop = try PrivateDesktop.withKeyring()
        let storage = desktop.service().storage(service: "app").blocking
        for number in 0..<1_000 { try storage.store(token: "fake \(number)", for: "key \(number)") }
        try desktop.tell("restart_keyring")
        #expect(try storage.list().items.count == 1_000)
        for number in 0..<1_000 { #expect(try storage.retrieve(for: "key \(number)") == "fake \(number)") }
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
    let eventTimeout: Duration = .seconds(60)

    init(_ desktop: PrivateDesktop) {
        self.desktop = desktop
        service = SecretService(configuration: desktop.configuration(timeout: .seconds(3_600)))
    }

    func storage(service name: String) -> any TokenStorage { service.storage(service: name) }
    func blockingStorage(service name: String) -> any BlockingTokenStorage {
        service.storage(service: name).blocking
    }
    func anotherHandle() -> any ConformanceSubject { KeyringSubject(desktop) }
    func close() { service.close() }
}
