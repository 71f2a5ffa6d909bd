import Testing
import TokenVault
import TokenVaultPlatform

/// Services that ask first, and programs that lie.
@Suite struct HostileServiceTests {
    private let desktop: PrivateDesktop

    init() throws { desktop = try PrivateDesktop() }

    private func fake(_ behaviours: String...) throws -> SecretServiceTokenStorage.Blocking {
        try desktop.start(fake: behaviours)
        return SecretService(
            configuration: desktop.configuration(
                prompting: .allowed(within: .seconds(30)), timeout: .seconds(30), allowsPlainSession: true)
        ).storage(service: "app").blocking
    }

    @Test func aDeletionThatThePersonDeclinesIsNone() throws {
        let storage = try fake("delete-prompts", "prompt-is-dismissed")
        try storage.store(token: "fake", for: "key")
        let error = #expect(throws: TokenStorageError.self) { try storage.delete(for: "key") }
        #expect(error?.code == .locked && error?.underlying == "the prompt was dismissed")
        #expect(try storage.retrieve(for: "key") == "fake")
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
            createsCollection: true, prompting: .allowed(within: .seconds(30)), timeout: .seconds(30),
            allowsPlainSession: true)
        let storage = SecretService(configuration: configuration).storage(service: "app").blocking
        #expect(code { try storage.store(token: "fake", for: "key") } == .ioFailure)
    }

    /// Whoever believed it would take a locked keyring for one that the person unlocked.
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
        // It still waited for the person when the service ended.
        #expect(outcome.wait { $0 } == .unavailable)
    }

    private func create(_ secret: String) throws {
        try desktop.tell(
            "create", "label", secret, "xdg:schema", "org.tokenvault.Token", "service", "app", "account",
            "key",
            "secret", secret)
    }

    /// Whoever believed it would write beside another writer, and two compare-and-stores could win.
    @Test func theTurnToWriteComesFromTheBusAlone() throws {
        try desktop.tell("start_keyring")
        let storage = SecretService(configuration: desktop.configuration(timeout: .seconds(3)))
            .storage(service: "app").blocking
        try desktop.tell("own_writer_name")
        let outcome = Monitor(TokenStorageError.Code??.none)
        let thread = WorkerThread(name: "writer")
        thread.run {
            let found = code { try storage.store(token: "fake", for: "key") }
            outcome.announce { $0 = .some(found) }
        }
        // Until it waits, there is nobody to lie to.
        while try desktop.tell("forge_writer") == ["0"] {}
        let found = outcome.wait { $0 }
        #expect(found == .timedOut)
        #expect(try storage.retrieve(for: "key") == nil)
    }
}
