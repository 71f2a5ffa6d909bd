import Glibc
import TestLanes
import Testing
import TokenVault
import TokenVaultTesting

/// The real keyring passes the whole contract.
@Suite(.tags(.desktop), .from(.usual)) struct KeyringConformanceTests {
    @Test(arguments: TokenStorageConformance.checks.filter { !KeyringSizeTests.names.contains($0.name) })
    func keepsTheContract(_ check: ConformanceCheck) async throws {
        let subject = KeyringSubject(try PrivateDesktop.withKeyring())
        if check.applies(to: subject) { try await check.run(on: subject) }
    }

    @Test(arguments: TokenStorageConformance.checks.filter { !KeyringSizeTests.names.contains($0.name) })
    func theBlockingViewKeepsTheContract(_ check: ConformanceCheck) async throws {
        let subject = ThroughBlockingView(KeyringSubject(try PrivateDesktop.withKeyring()))
        if check.applies(to: subject) { try await check.run(on: subject) }
    }

    @Test func onlyChecksOfMissingCapabilitiesAreLeftOut() throws {
        let subject = KeyringSubject(try PrivateDesktop.withKeyring())
        let unmet = TokenStorageConformance.checks.filter { !$0.applies(to: subject) }
        #expect(unmet.allSatisfy { !$0.requirements.isDisjoint(with: [.lockStates, .devices, .passcode]) })
        #expect(TokenStorageConformance.checks.count - unmet.count >= 100)
    }
}

/// The daemon rewrites the whole keyring for every item: storing hundreds takes most of a minute.
@Suite(.tags(.desktop, .endurance), .from(.all)) struct KeyringSizeTests {
    private static let ofHundreds = "a commit takes hundreds of changes"
    private static let ofThousands = "a reader that missed changes gets an overflow, then the later ones"
    static let names: Set = [ofHundreds, ofThousands]

    @Test(arguments: TokenStorageConformance.checks.filter { names.contains($0.name) }, [false, true])
    func manyItemsKeepTheContract(_ check: ConformanceCheck, throughBlockingView: Bool) async throws {
        let desktop = try PrivateDesktop.withKeyring()
        // Thousands of items on the disk take minutes: `make keyring-limits`. Otherwise they go to the
        // daemon's keyring in memory.
        if check.name == Self.ofThousands, getenv("TOKENVAULT_KEYRING_LIMITS") == nil {
            try desktop.tell("set_default", "/org/freedesktop/secrets/collection/session")
        }
        let subject = KeyringSubject(desktop)
        if throughBlockingView {
            try await check.run(on: ThroughBlockingView(subject))
        } else {
            try await check.run(on: subject)
        }
    }

    @Test func theChecksHaveTheseNames() {
        #expect(Self.names.isSubset(of: TokenStorageConformance.checks.map(\.name)))
    }

    @Test func aThousandItemsAreKept() throws {
        let desktop = try PrivateDesktop.withKeyring()
        let storage = desktop.service().storage(service: "app").blocking
        for number in 0..<1_000 { try storage.store(token: "fake \(number)", for: "key \(number)") }
        try desktop.tell("restart_keyring")
        #expect(try storage.list().items.count == 1_000)
        for number in 0..<1_000 { #expect(try storage.retrieve(for: "key \(number)") == "fake \(number)") }
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
