import Synchronization
import Testing
import TokenVault

@testable import vaultctl

/// A login keyring in memory, as the commands see one.
private final class MemoryKeyring: KeyringItems {
    private let keys = Mutex<[String: Secret]>([:])
    private let failure = Mutex<TokenStorageError.Code?>(nil)

    var isEmpty: Bool { keys.withLock { $0.isEmpty } }
    func fail(with code: TokenStorageError.Code?) { failure.withLock { $0 = code } }

    func store(_ key: Secret, vault: String, label: String) throws(TokenStorageError) {
        try check()
        keys.withLock { $0[vault] = key }
    }
    func key(vault: String) throws(TokenStorageError) -> Secret? {
        try check()
        return keys.withLock { $0[vault] }
    }
    func delete(vault: String) throws(TokenStorageError) -> Bool {
        try check()
        return keys.withLock { $0.removeValue(forKey: vault) } != nil
    }
    private func check() throws(TokenStorageError) {
        if let code = failure.withLock({ $0 }) {
            throw TokenStorageError(code, operation: "keyring", backend: "secret-service")
        }
    }
}

@Suite struct KeyringTests {
    private let sandbox: Sandbox
    private let keyring = MemoryKeyring()

    init() throws { sandbox = try Sandbox.withVault() }

    /// A session as the commands make it, that never asks.
    private func session(keyFile: Bool = false, _ keyring: any KeyringItems) throws -> Session {
        let console = Console()
        console.keyring = keyring
        return try Session(
            console,
            LocationArguments(
                vault: sandbox.vault, backend: "file",
                stateDirectory: "\(sandbox.home)/.local/state/tokenvault", noInput: true),
            UnlockArguments(keyFile: keyFile ? "\(sandbox.home)/vault.key" : nil))
    }

    /// Adds a slot for the keyring.
    private func add() throws -> VaultSlot {
        let session = try session(keyFile: true, keyring)
        return try SlotAdd.addKeyring(to: try session.openUnlockedVault(), session.console)
    }

    @Test func theKeyringOpensTheVaultWhenNothingElseIsGiven() throws {
        _ = try sandbox.run("store", "k", input: "fake")
        let slot = try add()
        #expect(slot.kind == .secretService && !keyring.isEmpty)
        #expect(try sandbox.run("slot", "list").text.contains("\n2\tsecret-service\t"))
        #expect(try sandbox.run("slot", "list", "--json").text.contains(#""id":2,"kind":"secret-service""#))
        #expect(try sandbox.run("status").text.contains("opened by:   key-file, secret-service\n"))
        let storage = try session(keyring).storage(service: "default")
        #expect(try storage.retrieve(for: "k") == "fake")
        // What is given wins, and needs no keyring.
        keyring.fail(with: .unavailable)
        #expect(try session(keyFile: true, keyring).storage(service: "default").retrieve(for: "k") == "fake")
        #expect(try sandbox.run("retrieve", "k").text == "fake")
        // There is no desktop here.
        expectOneLine(try sandbox.run("retrieve", "k", without: "VAULTCTL_KEY_FILE"), status: 8)
    }

    @Test(arguments: [
        (TokenStorageError.Code.locked, vaultctl.ExitStatus.locked), (.unavailable, .unavailable),
        (.timedOut, .timedOut), (.corrupt, .damaged),
    ])
    func whyTheKeyringCannotIsTold(_ code: TokenStorageError.Code, _ status: vaultctl.ExitStatus) throws {
        _ = try add()
        keyring.fail(with: code)
        let failure = #expect(throws: CommandFailure.self) { try session(keyring).openUnlockedVault() }
        #expect(failure?.status == status)
        let adding = #expect(throws: CommandFailure.self) { try add() }
        #expect(adding?.status == status)
    }

    @Test func aKeyringWithoutTheKeyIsLockedAndWithAnotherIsWrong() throws {
        _ = try add()
        let other = MemoryKeyring()
        let locked = #expect(throws: CommandFailure.self) { try session(other).openUnlockedVault() }
        #expect(locked?.status == .locked)
        let vault = try session(other).openVault()
        try other.store(Secret([UInt8](repeating: 0, count: 32)), vault: vault.identifier, label: "")
        let wrong = #expect(throws: CommandFailure.self) { try session(other).openUnlockedVault() }
        #expect(wrong?.status == .refused)
    }

    @Test func theKeyGoesWithTheSlotAndWithTheVault() throws {
        let slot = try add()
        let vault = try session(keyFile: true, keyring).openUnlockedVault()
        let console = Console()
        console.keyring = keyring
        SlotRemove.clearKeyring(of: vault, console)
        #expect(!keyring.isEmpty)
        try vault.removeSlot(slot.id)
        SlotRemove.clearKeyring(of: vault, console)
        #expect(keyring.isEmpty)

        _ = try add()
        let arguments = [
            "destroy", "--yes", "--vault", sandbox.vault, "--state-dir",
            "\(sandbox.home)/.local/state/tokenvault",
        ]
        guard case .command(let destroy) = try CommandLineParser.parse(arguments) else {
            Issue.record("not understood")
            return
        }
        #expect(try destroy.execute(console) == .done)
        #expect(keyring.isEmpty)
    }

    @Test func withoutAKeyringItIsNotAvailable() throws {
        expectOneLine(try sandbox.run("slot", "add", "secret-service"), status: 8)
        expectOneLine(try sandbox.run("slot", "add", "secret-service", "path"), status: 64)
        expectOneLine(
            try sandbox.run("slot", "add", "secret-service", "--new-passphrase-file", "path"), status: 64)
        // Nobody is asked where there is none.
        let quiet = try PseudoTerminal(sandbox, ["init", "--vault", "\(sandbox.home)/second.vault"])
        try quiet.expect("New passphrase: ")
        try quiet.type("fake words\r")
        try quiet.expect("The same again: ")
        try quiet.type("fake words\r")
        try quiet.expect("Type yes to do so: ")
        try quiet.type("no\r")
        #expect(try quiet.end() == 0)
        #expect(!quiet.shown.contains("keyring"))
        // And an offer that nobody can take up adds nothing.
        let console = Console()
        console.mayAsk = false
        console.keyring = keyring
        let vault = try session(keyFile: true, keyring).openUnlockedVault()
        try Initialize.offerKeyring(vault, console)
        #expect(try keyring.isEmpty && vault.slots().count == 1)
    }
}
