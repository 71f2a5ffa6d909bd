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
