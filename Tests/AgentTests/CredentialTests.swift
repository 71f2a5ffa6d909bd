import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

/// Vaults that are unlocked when the agent starts, with what systemd gave it: a directory plays that.
@Suite(.tags(.programs), .from(.usual)) struct CredentialTests {
    private static let passphrase = UnlockMethod.passphrase(Secret(utf8: "not a real passphrase"))
    private static let key = "not a real credential: 0123456789abcdef"

    let home: TestHome
    let vault: FilePath
    let credentials: FilePath

    /// A vault that a passphrase opens, with an item of each kind, and a credential.
    init() throws {
        home = try TestHome()
        vault = home.path.appending("vaults").appending("served.vault")
        credentials = home.path.appending("credentials")
        try PosixDirectory.makeAll(credentials)
        try SmallFile.create(credentials.appending("key"), Array((Self.key + "\n").utf8))
        let created = try BlockingFileVault.create(
            at: vault, unlockMethod: Self.passphrase, configuration: home.configuration)
        let storage = created.storage(service: "s")
        try storage.store(token: "a", for: "dark", policy: .whenUnlocked)
        try storage.store(token: "b", for: "open", policy: .afterFirstUnlock)
        created.close()
    }

    private func addSlot(scope: VaultSlot.Scope?) throws {
        let opened = try BlockingFileVault.open(at: vault, configuration: home.configuration)
        defer { opened.close() }
        try opened.unlock(with: Self.passphrase)
        _ = try opened.addSlot(.keyFile(Secret(utf8: Self.key)), scope: scope)
    }

    private func start(_ credential: String, in directory: FilePath?) throws -> AgentProcess {
        try AgentProcess(
            at: home.place, environment: directory.map { ["CREDENTIALS_DIRECTORY=\($0)"] } ?? [],
            arguments: ["--credential", "\(credential):\(vault)", "--state-dir", home.state.string])
    }

    @Test(arguments: [nil, VaultSlot.Scope.all])
    func itOpensWhatItsSlotLeadsTo(scope: VaultSlot.Scope?) throws {
        try addSlot(scope: scope)
        let process = try start("key", in: credentials)
        defer { process.end(SIGKILL) }
        let held = BlockingAgentVault(at: vault, agent: home.place)
        #expect(try held.storage(service: "s").retrieve(for: "open") == "b")
        if scope == .all {
            #expect(try held.storage(service: "s").retrieve(for: "dark") == "a")
            #expect(try held.status()?.idleTime == nil)
        } else {
            let error = #expect(throws: TokenStorageError.self) {
                try held.storage(service: "s").retrieve(for: "dark")
            }
            #expect(error?.code == .notPermitted)
        }
    }

    @Test func withoutItTheAgentDoesNotStart() throws {
        // First no slot has the key, then no credential has the name, then there are no credentials.
        #expect(throws: AgentProcess.Ended(status: 8)) { try start("key", in: credentials) }
        try addSlot(scope: nil)
        #expect(throws: AgentProcess.Ended(status: 8)) { try start("other", in: credentials) }
        #expect(throws: AgentProcess.Ended(status: 8)) { try start("key", in: nil) }
        #expect(throws: AgentProcess.Ended(status: 64)) { try start("../credentials/key", in: credentials) }
        #expect(throws: AgentProcess.Ended(status: 64)) {
            try AgentProcess(at: home.place, arguments: ["--credential", "key"])
        }
        try start("key", in: credentials).end(SIGTERM)
    }

    @Test func whatIsWrongWithItNamesIt() throws {
        let home = try CommandHome()
        let given = ["CREDENTIALS_DIRECTORY=\(credentials)"]
        for name in ["nope", "key"] {
            let agent = try home.run(["agent", "--credential", name], with: given)
            #expect(agent.status == 8 || agent.status == 1, "\(agent.error)")
            #expect(agent.error.contains("credential \(name)"), "\(agent.error)")
            #expect(!agent.error.contains("key file"), "\(agent.error)")
        }
    }

    @Test func whatANarrowSlotOpenedIsToldThroughTheAgent() throws {
        let home = try CommandHome()
        let narrow = try home.file("narrow.key", "another unreal key 0123456789abcdef0123456789abcdef")
        let added = try home.run(
            "slot", "add", "key-file", narrow, "--scope", "after-first-unlock", "--key-file", home.keyFile)
        #expect(added.status == 0, "\(added.error)")
        _ = try home.run("store", "shut", "--key-file", home.keyFile, input: "fake")
        let unlock = try home.run("unlock", "--key-file", narrow)
        #expect(unlock.status == 0 && unlock.error.hasPrefix("vaultctl: note: "), "\(unlock.error)")
        #expect(unlock.error.contains("\"vaultctl unlock --passphrase-file …\""), "\(unlock.error)")
        let shut = try home.run("retrieve", "shut")
        #expect(
            shut.status == 5 && shut.error.contains("give --passphrase-file, or a key file"),
            "\(shut.error)")
        let json = try home.run("status", "--json").output
        #expect(
            json.contains(#""agent":true"#) && json.contains(#""scope":"after-first-unlock","slots""#),
            "\(json)")
        let text = try home.run("status").output
        #expect(
            text.contains("state:       locked, except for after-first-unlock items"), "\(text)")
        let all = try home.run("unlock", "--key-file", home.keyFile)
        #expect(all.status == 0 && all.error.isEmpty, "\(all.error)")
        #expect(try home.run("unlock", "--key-file", narrow).error.isEmpty)
        #expect(try home.run("status", "--json").output.contains(#""scope":"all","slots""#))
    }

    @Test func vaultctlAddsTheSlotAndStartsTheAgentWithIt() throws {
        let home = try CommandHome()
        let given = ["CREDENTIALS_DIRECTORY=\(credentials)"]
        let add = ["slot", "add", "systemd-credential", "key", "--scope", "all", "--key-file", home.keyFile]
        #expect(try home.run(add).status == 8)
        let absent = try home.run(add, with: ["CREDENTIALS_DIRECTORY=\(home.path)"])
        #expect(absent.status == 1 && absent.error.contains("the credential: No such file"))
        #expect(try home.run(["slot", "add", "systemd-credential"], with: given).status == 64)
        #expect(try home.run(["slot", "add", "systemd-credential", "../key"], with: given).status == 64)
        #expect(try home.run(add, with: given).status == 0)
        #expect(try home.run(["store", "k", "--key-file", home.keyFile], input: "a").status == 0)
        let agent = try home.startAgent("--credential", "key", with: given)
        #expect(try home.run("retrieve", "k").output == "a")
        kill(agent, SIGTERM)
        #expect(Program.wait(for: agent) == 0)
        #expect(try home.run("agent", "--credential", "a/b", with: given).status == 64)
        #expect(try home.run("agent", "--ready-fd", "2", with: given).status == 64)
        // A number above every descriptor that another test has open meanwhile.
        let outcome = try home.run("agent", "--ready-fd", "1048575", with: given)
        #expect(
            outcome.status == 64 && outcome.error.contains("there is no descriptor 1048575"),
            "\(outcome.status): \(outcome.error)")
    }

    /// The agent refuses a credential that is not a file. Opening a pipe for reading would block until a
    /// writer opens it.
    @Test(.timeLimit(.minutes(20)), arguments: ["pipe", "directory", "link"])
    func aCredentialThatIsNoFileIsRefused(kind: String) throws {
        try addSlot(scope: .all)
        let path = credentials.appending("odd").string
        switch kind {
        case "pipe": try #require(mkfifo(path, 0o600) == 0)
        case "directory": try #require(mkdir(path, 0o700) == 0)
        default: try #require(symlink("/dev/zero", path) == 0)
        }
        #expect(throws: AgentProcess.Ended(status: 8)) { try start("odd", in: credentials) }
        // A link to a file counts as a file.
        try #require(symlink(credentials.appending("key").string, path + "2") == 0)
        let process = try start("odd2", in: credentials)
        process.end(SIGTERM)
    }
}
