import ProgramSupport
import Synchronization
import TestLanes
import Testing
import TokenVault

@testable import vaultctl

/// A login keyring in memory, as the commands see one.
private final class MemoryKeyring: KeyringItems {
    private let keys = Mutex<[String: Secret]>([:])
    private let failure = Mutex<TokenStorageError.Code?>(nil)

    var isEmpty: Bool { keys.withLock { $0.isEmpty } }
    func fail(with code: TokenStorageError.Code?) { failure.withLock { $0 = code } }

    func add(_ key: Secret, vault: String, name: String, label: String) throws(TokenStorageError) {
        try check()
        keys.withLock { $0["\(vault).\(name)"] = key }
    }
    func keys(vault: String) throws(TokenStorageError) -> [String: Secret] {
        try check()
        let own = keys.withLock { $0 }.filter { $0.key.hasPrefix("\(vault).") }
        return Dictionary(
            uniqueKeysWithValues: own.map { (String($0.key.dropFirst(vault.count + 1)), $0.value) })
    }
    func delete(vault: String, name: String) throws(TokenStorageError) -> Bool {
        try check()
        return keys.withLock { $0.removeValue(forKey: "\(vault).\(name)") } != nil
    }
    private func check() throws(TokenStorageError) {
        if let code = failure.withLock({ $0 }) {
            throw TokenStorageError(code, operation: "keyring", backend: "secret-service")
        }
    }
}

@Suite(.tags(.programs), .from(.usual)) struct KeyringTests {
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
        #expect(try sandbox.run("status").text.contains("opens with:  key-file, secret-service\n"))
        let storage = try session(keyring).storage(service: "default")
        #expect(try storage.retrieve(for: "k") == "fake")
        // An option has priority and needs no keyring.
        keyring.fail(with: .unavailable)
        #expect(try session(keyFile: true, keyring).storage(service: "default").retrieve(for: "k") == "fake")
        #expect(try sandbox.run("retrieve", "k").text == "fake")
        // There is no keyring in this session.
        expectOneLine(try sandbox.run("retrieve", "k", without: "VAULTCTL_KEY_FILE"), status: 8)
    }

    @Test(arguments: [
        (TokenStorageError.Code.locked, ProgramSupport.ExitStatus.locked), (.unavailable, .unavailable),
        (.timedOut, .timedOut), (.corrupt, .damaged),
    ])
    func whyTheKeyringCannotIsTold(_ code: TokenStorageError.Code, _ status: ProgramSupport.ExitStatus) throws
    {
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
        try other.add(
            Secret([UInt8](repeating: 0, count: 32)), vault: vault.identifier, name: "planted", label: "")
        let wrong = #expect(throws: CommandFailure.self) { try session(other).openUnlockedVault() }
        #expect(wrong?.status == .refused)
    }

    private func execute(_ words: String..., json: Bool = false) throws -> ProgramSupport.ExitStatus {
        let console = Console()
        console.keyring = keyring
        let arguments =
            words + ["--state-dir", "\(sandbox.home)/.local/state/tokenvault", "--no-input"]
            + (json ? ["--json"] : [])
        guard case .command(let command) = try CommandLineParser.parse(arguments) else {
            Issue.record("the command line was not accepted")
            return .failure
        }
        return try command.execute(console)
    }

    @Test func theKeyringGoesAlongToANewRoot() throws {
        _ = try sandbox.run("store", "k", input: "fake")
        _ = try add()
        #expect(try sandbox.run("slot", "add", "key-file", "\(sandbox.home)/second").text == "3\n")
        let key = "\(sandbox.home)/vault.key"
        #expect(
            try execute("slot", "remove", "3", "--revoke", "--vault", sandbox.vault, "--key-file", key)
                == .done)
        #expect(try session(keyring).storage(service: "default").retrieve(for: "k") == "fake")
        // A keyring that cannot be reached would lose its slot, so the command needs an explicit option.
        keyring.fail(with: .unavailable)
        #expect(try sandbox.run("slot", "add", "key-file", "\(sandbox.home)/second").text == "4\n")
        let failure = #expect(throws: CommandFailure.self) {
            try execute("slot", "remove", "4", "--revoke", "--vault", sandbox.vault, "--key-file", key)
        }
        #expect(failure?.status == .refused && failure?.happened == "slot 2 (secret-service) would be lost")
    }

    @Test func besideARecoveryKeyItOpensLess() throws {
        _ = try sandbox.run("store", "shut", input: "fake")
        _ = try sandbox.run("store", "open", "--policy", "after-first-unlock", input: "fake")
        _ = try sandbox.run("slot", "add", "recovery")
        #expect(try add().scope == .afterFirstUnlock)
        let storage = try session(keyring).storage(service: "default")
        #expect(try storage.retrieve(for: "open") == "fake")
        #expect(throws: TokenStorageError.self) { try storage.retrieve(for: "shut") }
    }

    @Test func aVaultOfTheKeyringAloneHasARecoveryKey() throws {
        let path = "\(sandbox.home)/desktop.vault"
        let refused = #expect(throws: CommandFailure.self) {
            try execute("init", "--secret-service", "--vault", path)
        }
        #expect(refused?.status == .refused && refused?.advice.contains("--recovery") == true)
        #expect(keyring.isEmpty)
        #expect(try execute("init", "--secret-service", "--recovery", "--vault", path, json: true) == .done)
        #expect(!keyring.isEmpty)
        let kinds = try sandbox.run("slot", "list", "--vault", path).text
        #expect(kinds.contains("1\tsecret-service\t") && kinds.contains("2\trecovery\t"))
        #expect(!kinds.contains("after-first-unlock"))
    }

    @Test func theKeyGoesWithTheSlotAndWithTheVault() throws {
        let slot = try add()
        let vault = try session(keyFile: true, keyring).openUnlockedVault()
        let console = Console()
        console.keyring = keyring
        #expect(!SlotRemove.clearKeyring(of: vault, console))
        #expect(!keyring.isEmpty)
        try vault.removeSlot(slot.id)
        #expect(SlotRemove.clearKeyring(of: vault, console))
        #expect(keyring.isEmpty)

        _ = try add()
        let arguments = [
            "destroy", "--yes", "--vault", sandbox.vault, "--state-dir",
            "\(sandbox.home)/.local/state/tokenvault",
        ]
        guard case .command(let destroy) = try CommandLineParser.parse(arguments) else {
            Issue.record("the command line was not accepted")
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
        // Without a keyring there is no question about it.
        let quiet = try PseudoTerminal(sandbox, ["init", "--vault", "\(sandbox.home)/second.vault"])
        try quiet.expect("New passphrase: ")
        try quiet.type("fake words\r")
        try quiet.expect("The same again: ")
        try quiet.type("fake words\r")
        try quiet.expect("Type yes to do so: ")
        try quiet.type("no\r")
        #expect(try quiet.end() == 0)
        #expect(!quiet.shown.contains("keyring"))
        // Without a user to answer, nothing is added.
        let console = Console()
        console.mayAsk = false
        console.keyring = keyring
        let vault = try session(keyFile: true, keyring).openUnlockedVault()
        try Initialize.offerKeyring(vault, console)
        #expect(try keyring.isEmpty && vault.slots().count == 1)
    }
}
