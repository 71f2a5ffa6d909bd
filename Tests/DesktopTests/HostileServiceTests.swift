import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform

/// Services that ask first, and programs that lie.
@Suite(.tags(.desktop), .from(.usual)) struct HostileServiceTests {
    private let desktop: PrivateDesktop

    init() throws { desktop = try PrivateDesktop() }

    private func fake(_ behaviours: String...) throws -> SecretServiceTokenStorage.Blocking {
        try desktop.start(fake: behaviours)
        return SecretService(
            configuration: desktop.configuration(
                prompting: .allowed(within: .seconds(3_600)), timeout: .seconds(3_600),
                allowsPlainSession: true)
        ).storage(service: "app").blocking
    }

    @Test func aDeletionThatThePersonDeclinesIsNone() throws {
        let storage = try fake("delete-prompts", "prompt-is-dismissed")
        try storage.store(token: "fake", for: "key")
        let error = #expect(throws: TokenStorageError.self) { try storage.delete(for: "key") }
        #expect(
            error?.code == .locked && error?.underlying == "the prompt was dismissed, or could not be shown")
        #expect(try storage.retrieve(for: "key") == "fake")
    }

    @Test func whoWaitsForAPromptIsTold() throws {
        let told = Monitor([Bool]())
        try desktop.start(fake: ["locked", "prompt-is-dismissed"])
        let configuration = desktop.configuration(
            prompting: .allowed(within: .seconds(3_600)), timeout: .seconds(3_600), allowsPlainSession: true)
        let service = SecretService(configuration: configuration) { isShown in
            told.announce { $0.append(isShown) }
        }
        let storage = service.storage(service: "app").blocking
        #expect(code { try storage.retrieve(for: "key") } == .locked)
        #expect(told.wait { $0 } == [true, false])
        #expect(try storage.lockState() == .locked)
        #expect(told.wait { $0 } == [true, false])
    }

    @Test func aDeletionThatThePersonConfirmsIsOne() throws {
        let storage = try fake("delete-prompts", "prompt-accepts")
        try storage.store(token: "fake", for: "key")
        #expect(try storage.delete(for: "key"))
        #expect(try storage.retrieve(for: "key") == nil)
    }

    @Test func anItemThatThePersonDeclinesIsNotStored() throws {
        let storage = try fake("create-prompts", "prompt-is-dismissed")
        #expect(code { try storage.store(token: "fake", for: "key") } == .locked)
        #expect(try storage.retrieve(for: "key") == nil)
    }

    @Test func anItemThatThePersonConfirmsIsStored() throws {
        let storage = try fake("create-prompts", "prompt-accepts")
        try storage.store(token: "fake", for: "key")
        #expect(try storage.retrieve(for: "key") == "fake")
    }

    @Test func anAnswerForAnotherSessionIsAnErrorAndNotAskedForForever() throws {
        let storage = try fake("other-session")
        try storage.store(token: "fake", for: "key")
        let error = #expect(throws: TokenStorageError.self) { try storage.retrieve(for: "key") }
        #expect(error?.code == .ioFailure && error?.underlying?.contains("another session") == true)
    }

    @Test func aDeletionThatLeavesADuplicateIsNone() throws {
        let storage = try fake("keeps-0")
        for label in ["first", "second"] { try create(label) }
        #expect(try storage.retrieve(for: "key") == "second")
        #expect(code { try storage.delete(for: "key") } == .ioFailure)
        #expect(try storage.retrieve(for: "key") == "second")
    }

    @Test func ofDuplicatesOfOneSecondTheLastOneMadeCounts() throws {
        let storage = try fake()
        for number in 0...10 { try create("number \(number)") }
        #expect(try storage.retrieve(for: "key") == "number 10")
    }

    @Test func aPromptThatGivesSomethingElseIsAnError() throws {
        try desktop.start(fake: ["no-default", "prompt-accepts", "prompt-gives-text"])
        let configuration = desktop.configuration(
            createsCollection: true, prompting: .allowed(within: .seconds(3_600)), timeout: .seconds(3_600),
            allowsPlainSession: true)
        let storage = SecretService(configuration: configuration).storage(service: "app").blocking
        #expect(code { try storage.store(token: "fake", for: "key") } == .ioFailure)
    }

    @Test(arguments: ["delete-prompts", "create-prompts"])
    func aPromptForAWriteIsTakenBackWhenItIsCancelled(_ behaviour: String) async throws {
        let storage = try fake(behaviour)
        if behaviour == "delete-prompts" { try storage.store(token: "fake", for: "key") }
        let asynchronous = storage.secretService.storage(service: "app")
        let task = Task {
            if behaviour == "delete-prompts" {
                _ = try await asynchronous.delete(for: "key")
            } else {
                try await asynchronous.store(token: "fake", for: "key")
            }
        }
        #expect(try await desktop.hear() == ["prompting"])
        task.cancel()
        let error = await #expect(throws: TokenStorageError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        #expect(try await desktop.hear() == ["dismissed"])
        #expect(try storage.retrieve(for: "key") == (behaviour == "delete-prompts" ? "fake" : nil))
    }

    @Test func aServiceThatEndsAtAPromptForAWriteLeavesItsOutcomeUnknown() throws {
        let storage = try fake("create-prompts", "die-on-prompt")
        let error = #expect(throws: TokenStorageError.self) { try storage.store(token: "fake", for: "key") }
        // The error must not advise to store again.
        #expect(error?.code == .outcomeUnknown && error?.advice == nil, "\(error)")
    }

    /// It may have the tokens: the next store in the list must not be taken for good.
    @Test(arguments: ["die-on-get", "die-on-open"])
    func aServiceThatEndsWhenItIsLookedAtIsNotTakenForNone(_ behaviour: String) async throws {
        try desktop.start(fake: [behaviour])
        let memory = InMemoryVault()
        let other = StorageCandidate(
            name: "other", probe: { () throws(TokenStorageError) in .creatable },
            storage: { (service) throws(TokenStorageError) in memory.storage(service: service) })
        let chooser = StorageChooser(
            [.secretService(desktop.configuration(allowsPlainSession: true)), other],
            rememberingIn: FilePath(desktop.path).appending("choices"))
        let error = await #expect(throws: TokenStorageError.self) {
            try await chooser.choose(service: "app")
        }
        #expect(error?.code == .unavailable)
        guard case .serviceEnded? = error?.reason else {
            Issue.record("\(error?.reason)")
            return
        }
    }

    /// The numbers of calls are easy to guess, and the bus passes on replies that no client asked for.
    @Test func repliesComeFromTheServiceAlone() async throws {
        let storage = try fake("silent-on-search").secretService.storage(service: "app")
        let task = Task { try await storage.retrieve(for: "key") }
        #expect(try await desktop.hear() == ["silent"])
        try desktop.tell("forge_replies", "100")
        task.cancel()
        #expect(await code { try await task.value } == .cancelled)
        try desktop.tell("stop_fake")
        try desktop.tell("start_keyring")
        #expect(try await storage.retrieve(for: "key") == nil)
    }

    /// A client that believed the forged answer would take a locked keyring for one that the user unlocked.
    @Test func theAnswerToAPromptComesFromTheServiceAlone() throws {
        let storage = try fake("locked")
        let outcome = Monitor(TokenStorageError.Code??.none)
        let thread = WorkerThread(name: "reader")
        thread.run {
            let found = code { try storage.retrieve(for: "key") }
            outcome.announce { $0 = .some(found) }
        }
        #expect(try desktop.tell("fake_says") == ["prompting"])
        try desktop.tell(
            "forge_completion", "/org/freedesktop/secrets/prompt/1",
            "/org/freedesktop/secrets/collection/only")
        try desktop.tell("stop_fake")
        // The call still waited for the user when the service ended.
        #expect(outcome.wait { $0 } == .unavailable)
    }

    private func create(_ secret: String) throws {
        try desktop.tell(
            "create", "label", secret, "xdg:schema", "org.tokenvault.Token", "service", "app", "account",
            "key",
            "secret", secret)
    }

    /// A writer that believed the forged signal would write beside another writer. Two compare-and-store
    /// calls could then both succeed.
    @Test func theTurnToWriteComesFromTheBusAlone() async throws {
        try desktop.tell("start_keyring")
        let storage = desktop.service().storage(service: "app")
        try desktop.tell("own_writer_name")
        let task = Task { try await storage.store(token: "fake", for: "key") }
        // Forges the signal once the writer waits for its turn.
        while try desktop.tell("forge_writer") == ["0"] { await Task.yield() }
        // A writer that accepted the forged signal would have finished during so many calls.
        for _ in 0..<50 { #expect(try await storage.retrieve(for: "key") == nil) }
        task.cancel()
        #expect(await code { try await task.value } == .cancelled)
        #expect(try await storage.retrieve(for: "key") == nil)
    }
}
