import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform

/// A desktop in each unhealthy state. Each state has an error of its own, and no call waits longer than its
/// limit.
@Suite(.tags(.desktop), .from(.usual), .timeLimit(.minutes(20))) struct StatesTests {
    private let desktop: PrivateDesktop

    init() throws { desktop = try PrivateDesktop() }

    // MARK: - Nothing there

    @Test func withoutABusItIsUnavailable() throws {
        let configuration = SecretServiceConfiguration(bus: .address("unix:path=/nonexistent/bus"))
        let storage = SecretService(configuration: configuration).storage(service: "app").blocking
        let error = #expect(throws: TokenStorageError.self) { try storage.retrieve(for: "key") }
        #expect(error?.code == .unavailable)
        #expect(error?.advice?.contains("D-Bus session") == true)
        #expect(code { try storage.lockState() } == .unavailable)
        #expect(code { try storage.store(token: "fake", for: "key") } == .unavailable)
    }

    @Test func withoutAServiceItIsUnavailableAndThenThere() throws {
        let storage = desktop.service().storage(service: "app").blocking
        let error = #expect(throws: TokenStorageError.self) { try storage.retrieve(for: "key") }
        #expect(error?.code == .unavailable)
        #expect(error?.advice?.contains("start a Secret Service") == true)
        try desktop.tell("start_keyring")
        try storage.store(token: "fake", for: "key")
        #expect(try storage.retrieve(for: "key") == "fake")
    }

    @Test func aBusThatNeverAnswersIsTimedOut() throws {
        let silent = try SilentSocket()
        var configuration = SecretServiceConfiguration(bus: .address("unix:path=\(silent.path)"))
        configuration.timeout = .milliseconds(300)
        let storage = SecretService(configuration: configuration).storage(service: "app").blocking
        #expect(code { try storage.retrieve(for: "key") } == .timedOut)
    }

    @Test func withoutADefaultKeyringItIsUnavailable() throws {
        let storage = try fake("no-default").storage(service: "app").blocking
        let error = #expect(throws: TokenStorageError.self) { try storage.retrieve(for: "key") }
        #expect(error?.code == .unavailable)
        #expect(error?.underlying?.contains("no default keyring") == true)
    }

    @Test func aKeyringOfThatNameMayBeMissing() throws {
        try desktop.tell("start_keyring")
        let configuration = desktop.configuration(collection: .named("No such keyring"))
        let storage = SecretService(configuration: configuration).storage(service: "app").blocking
        let error = #expect(throws: TokenStorageError.self) { try storage.retrieve(for: "key") }
        #expect(error?.code == .unavailable)
        #expect(error?.underlying?.contains("of that name") == true)
    }

    @Test func aMissingKeyringIsMadeWhenAskedForAndAllowed() throws {
        let service = try fake(
            "no-default", "prompt-accepts", prompting: .allowed(within: .seconds(3_600)),
            createsCollection: true
        )
        let storage = service.storage(service: "app").blocking
        try storage.store(token: "fake", for: "key")
        #expect(try storage.retrieve(for: "key") == "fake")
    }

    @Test func askingForTheStateAsksNobody() throws {
        for behaviours in [["no-default"], ["locked"]] {
            let desktop = try PrivateDesktop()
            try desktop.start(fake: behaviours)
            let service = SecretService(
                configuration: desktop.configuration(
                    createsCollection: true, prompting: .allowed(within: .seconds(3_600)),
                    timeout: .seconds(3_600),
                    allowsPlainSession: true))
            let storage = service.storage(service: "app").blocking
            if behaviours == ["locked"] {
                #expect(try storage.lockState() == .locked)
            } else {
                #expect(code { try storage.lockState() } == .unavailable)
            }
        }
    }

    @Test func aKeyringThatThePersonDoesNotMakeIsUnavailable() throws {
        let service = try fake(
            "no-default", "prompt-is-dismissed", prompting: .allowed(within: .seconds(3_600)),
            createsCollection: true)
        let error = #expect(throws: TokenStorageError.self) {
            try service.storage(service: "app").blocking.store(token: "fake", for: "key")
        }
        #expect(error?.code == .unavailable)
        #expect(error?.underlying?.contains("dismissed") == true)
    }

    @Test func withoutLibsecretItIsUnavailableAndNamed() throws {
        // The loader finds this file first, and it is no library.
        let path = FilePath(desktop.path).appending("libsecret-1.so.0")
        try SmallFile.create(path, [])
        let output = try desktop.run(
            "/usr/bin/env", "LD_LIBRARY_PATH=\(desktop.path)", testProgram("KeyringWorker"), desktop.address,
            "name", "1", mayFail: true)
        #expect(output?.hasPrefix("failed store: not available (dlopen: no libsecret-1.so.0)") == true)
        #expect(output?.contains("install libsecret") == true)
    }

    // MARK: - Encryption

    @Test func noSecretCrossesTheBusInTheClear() throws {
        try desktop.tell("start_keyring")
        let storage = desktop.service().storage(service: "app").blocking
        try desktop.tell("start_monitor")
        try storage.store(token: "fake-but-unmistakable", for: "key")
        #expect(try storage.retrieve(for: "key") == "fake-but-unmistakable")
        #expect(try storage.item(for: "key") != nil)
        try storage.commit([.rename("key", to: "other"), .store(Secret(utf8: "fake-and-other"), for: "new")])
        // Another program's session is not encrypted, which shows that the monitor hears everything.
        try desktop.tell("create", "label", "fake-and-plain")
        let heard = try desktop.tell(
            "stop_monitor", "fake-but-unmistakable", "fake-and-other", "fake-and-plain", "CreateItem")
        #expect(heard.prefix(2) == ["0", "0"])
        #expect(heard.dropFirst(2).allSatisfy { $0 != "0" })
    }

    @Test func aServiceWithoutEncryptionIsRefused() throws {
        let storage = try fake(allowsPlainSession: false).storage(service: "app").blocking
        let error = #expect(throws: TokenStorageError.self) { try storage.store(token: "fake", for: "key") }
        #expect(error?.code == .notPermitted)
    }

    @Test func aServiceWithoutEncryptionWorksWhenAllowed() throws {
        let storage = try fake().storage(service: "app").blocking
        try storage.store(token: "fake", for: "key")
        #expect(try storage.retrieve(for: "key") == "fake")
        #expect(try storage.delete(for: "key"))
        #expect(try storage.retrieve(for: "key") == nil)
    }

    // MARK: - Silence and death

    @Test(arguments: ["open", "get", "search", "secret"])
    func aServiceThatStopsAnsweringIsTimedOut(_ point: String) throws {
        let storage = try fake("silent-on-\(point)", timeout: .milliseconds(500)).storage(service: "app")
        if point == "secret" {
            let patient = SecretService(configuration: desktop.configuration(allowsPlainSession: true))
            try patient.storage(service: "app").blocking.store(token: "fake", for: "key")
        }
        #expect(code { try storage.blocking.retrieve(for: "key") } == .timedOut)
    }

    @Test func aStoreThatIsNotAnsweredIsUnknown() async throws {
        // Long enough to reach the store itself on a busy machine.
        let storage = try fake("silent-on-create", timeout: .seconds(60)).storage(service: "app")
        let error = await #expect(throws: TokenStorageError.self) {
            try await storage.store(token: "fake", for: "key")
        }
        #expect(error?.code == .outcomeUnknown)
        #expect(error?.generation != nil)
    }

    @Test(arguments: ["open", "get", "search", "secret"])
    func aServiceThatDiesIsUnavailableAndThenBack(_ point: String) throws {
        try desktop.tell("start_fake", "die-on-\(point)")
        let service = SecretService(configuration: desktop.configuration(allowsPlainSession: true))
        let storage = service.storage(service: "app").blocking
        if point == "secret" { try storage.store(token: "fake", for: "key") }
        #expect(code { try storage.retrieve(for: "key") } == .unavailable)
        try desktop.tell("start_keyring")
        try storage.store(token: "fake", for: "key")
        #expect(try storage.retrieve(for: "key") == "fake")
    }

    @Test func aServiceThatDiesDuringAStoreLeavesItUnknown() throws {
        let storage = try fake("die-on-create").storage(service: "app").blocking
        let error = #expect(throws: TokenStorageError.self) { try storage.store(token: "fake", for: "key") }
        #expect(error?.code == .outcomeUnknown)
    }

    @Test func aLostBusEndsNothing() throws {
        try desktop.tell("start_keyring")
        let storage = desktop.service().storage(service: "app").blocking
        try storage.store(token: "fake", for: "key")
        try desktop.tell("stop_bus")
        #expect(code { try storage.retrieve(for: "key") } == .unavailable)
        #expect(code { try storage.store(token: "fake", for: "key") } == .unavailable)
        try desktop.tell("start_bus")
        try desktop.tell("start_keyring")
        #expect(try storage.retrieve(for: "key") == "fake")
    }

    @Test func anItemThatGoesWhileItIsReadIsAbsent() throws {
        let storage = try fake("found-and-gone").storage(service: "app").blocking
        #expect(try storage.retrieve(for: "key") == nil)
    }

    /// Replaced between the search and the look at what was found.
    @Test func anItemThatIsReplacedWhileItIsReadIsNotAbsent() throws {
        let service = try fake("found-and-gone-later")
        try service.storage(service: "app").blocking.store(token: "fake", for: "key")
        let another = SecretService(
            configuration: desktop.configuration(allowsPlainSession: true))
        let storage = another.storage(service: "app").blocking
        #expect(try storage.retrieve(for: "key") == "fake")
        #expect(try desktop.tell("fake_says") == ["gone"])
    }

    // MARK: - Locks and prompts

    @Test func aVaultKeyThatIsLockedByItselfIsAskedFor() throws {
        let service = try fake(
            "confirms-items", "prompt-accepts", prompting: .allowed(within: .seconds(3_600)))
        let keys = SecretServiceVaultKeys(service)
        try keys.add(Secret([1]), vault: "vault", name: "slot", label: "label")
        #expect(try keys.keys(vault: "vault") == ["slot": Secret([1])])
    }

    /// A service may ask the person for each item, though its keyring is open.
    @Test(arguments: [false, true]) func anItemThatIsLockedByItselfIsUnlocked(mayAsk: Bool) throws {
        let service = try fake(
            "confirms-items", "prompt-accepts", prompting: mayAsk ? .allowed(within: .seconds(3_600)) : .never
        )
        let storage = service.storage(service: "app").blocking
        try storage.store(token: "fake", for: "key")
        if mayAsk {
            #expect(try storage.retrieve(for: "key") == "fake")
        } else {
            #expect(code { try storage.retrieve(for: "key") } == .locked)
        }
    }

    @Test func aLockedKeyringIsLockedToEveryCall() async throws {
        try desktop.tell("start_keyring")
        let storage = desktop.service().storage(service: "app")
        try await storage.store(token: "fake", for: "key")
        try desktop.tell("lock")
        #expect(try await storage.lockState() == .locked)
        for key in ["key", "absent"] as [TokenKey] {
            #expect(await code { try await storage.secret(for: key) } == .locked)
            #expect(await code { try await storage.item(for: key) } == .locked)
            #expect(await code { try await storage.metadata(for: key) } == .locked)
            #expect(await code { try await storage.delete(for: key) } == .locked)
            #expect(await code { try await storage.store(token: "other", for: key) } == .locked)
        }
        #expect(await code { try await storage.list() } == .locked)
        #expect(await code { try await storage.deleteAll() } == .locked)
        try desktop.tell("unlock")
        #expect(try await storage.lockState() == .unlocked)
        #expect(try await storage.retrieve(for: "key") == "fake")
    }

    @Test func aPromptThatIsAnsweredUnlocks() throws {
        let storage = try fake("locked", "prompt-accepts", prompting: .allowed(within: .seconds(3_600)))
            .storage(service: "app").blocking
        try storage.store(token: "fake", for: "key")
        #expect(try storage.retrieve(for: "key") == "fake")
    }

    @Test func aPromptThatIsDismissedLeavesItLocked() throws {
        let storage = try fake("locked", "prompt-is-dismissed", prompting: .allowed(within: .seconds(3_600)))
            .storage(service: "app").blocking
        let error = #expect(throws: TokenStorageError.self) { try storage.retrieve(for: "key") }
        #expect(error?.code == .locked)
        #expect(error?.underlying == "the prompt was dismissed, or could not be shown")
    }

    @Test func aPromptThatNobodyAnswersIsTakenBack() throws {
        let service = try fake("locked", prompting: .allowed(within: .milliseconds(300)))
        let error = #expect(throws: TokenStorageError.self) {
            try service.storage(service: "app").blocking.retrieve(for: "key")
        }
        #expect(error?.code == .timedOut)
        #expect(try desktop.tell("fake_says") == ["prompting"])
        #expect(try desktop.tell("fake_says") == ["dismissed"])
    }

    @Test func aServiceThatDiesDuringAPromptIsUnavailable() throws {
        let storage = try fake("locked", "die-on-prompt", prompting: .allowed(within: .seconds(3_600)))
            .storage(service: "app").blocking
        #expect(code { try storage.retrieve(for: "key") } == .unavailable)
    }

    @Test func cancellingATaskTakesThePromptBackAndOthersGoOn() async throws {
        let service = try fake("locked", prompting: .allowed(within: .seconds(3_600)))
        let storage = service.storage(service: "app")
        let task = Task { try await storage.retrieve(for: "key") }
        #expect(try await desktop.hear() == ["prompting"])
        // The prompt occupies only its own thread.
        #expect(try await storage.lockState() == .locked)
        task.cancel()
        #expect(await code { try await task.value } == .cancelled)
        #expect(try await desktop.hear() == ["dismissed"])
    }

    @Test func cancellingATaskThatWaitsForItsTurnChangesNothing() async throws {
        try desktop.tell("start_keyring")
        try desktop.tell("own_writer_name")
        let storage = desktop.service().storage(service: "app")
        let task = Task { try await storage.store(token: "fake", for: "key") }
        task.cancel()
        #expect(await code { try await task.value } == .cancelled)
        try desktop.tell("release_writer_name")
        #expect(try await storage.retrieve(for: "key") == nil)
        try await storage.store(token: "fake", for: "key")
    }

    // MARK: - Support

    private func fake(
        _ behaviours: String...,
        prompting: SecretServiceConfiguration.Prompting = .never, timeout: Duration = .seconds(3_600),
        allowsPlainSession: Bool = true, createsCollection: Bool = false
    ) throws -> SecretService {
        try desktop.start(fake: behaviours)
        return SecretService(
            configuration: desktop.configuration(
                createsCollection: createsCollection, prompting: prompting, timeout: timeout,
                allowsPlainSession: allowsPlainSession))
    }
}

/// The code of the error that `body` throws; `nil` when it throws none.
func code(_ body: () throws -> Any?) -> TokenStorageError.Code? {
    do { _ = try body() } catch { return (error as? TokenStorageError)?.code }
    return nil
}

/// The code of the error that `body` throws; `nil` when it throws none.
func code(_ body: () async throws -> Any?) async -> TokenStorageError.Code? {
    do { _ = try await body() } catch { return (error as? TokenStorageError)?.code }
    return nil
}
