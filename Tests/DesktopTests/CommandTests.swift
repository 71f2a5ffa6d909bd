import SystemPackage
import TestLanes
import Testing
import TokenVault

/// `vaultctl` on a desktop: its keyring as a backend, as the keeper of a vault's key, and as an end of a move.
@Suite(.tags(.desktop), .from(.usual)) struct CommandTests {
    private let desktop: PrivateDesktop

    init() throws { desktop = try PrivateDesktop.withKeyring() }

    /// What `vaultctl` prints; `nil` when it fails.
    private func run(_ words: String..., input: String = "") throws -> String? {
        try run(words, input: input)
    }

    private func run(_ words: [String], input: String = "") throws -> String? {
        try desktop.run([vaultctl] + words, input: input)
    }

    /// What `vaultctl` prints in the keyring.
    private func keyring(_ words: String..., input: String = "") throws -> String? {
        try desktop.run([vaultctl] + words + ["--backend", "secret-service"], input: input)
    }

    @Test func itemsAreStoredListedAndDeleted() throws {
        #expect(
            try keyring("store", "k", "--label", "Example", "--attribute", "a=b", input: "fake") == "")
        #expect(try keyring("retrieve", "k") == "fake")
        #expect(try desktop.run("secret-tool", "lookup", "service", "default", "account", "k") == "fake")
        #expect(try keyring("info", "k")?.contains("label:       Example\n") == true)
        #expect(try keyring("set", "k", "--label", "Another") == "")
        #expect(try keyring("info", "k")?.contains("label:       Another\n") == true)
        #expect(try keyring("rename", "k", "renamed") == "")
        #expect(try keyring("store", "other", "--service", "s", input: "fake") == "")
        #expect(try keyring("list") == "renamed\n")
        #expect(try keyring("list", "--all-services") == "default\trenamed\ns\tother\n")
        #expect(
            try keyring("status", "--json")
                == #"{"backend":"secret-service","state":"unlocked","items":2,"agent":false}"# + "\n")
        #expect(try keyring("delete", "renamed") == "")
        #expect(try keyring("retrieve", "renamed") == nil)
    }

    @Test func whatAKeyringCannotDoIsTold() throws {
        #expect(try keyring("store", "k", "--policy", "after-first-unlock", input: "fake") == nil)
        for command in ["verify", "compact", "passphrase", "init"] {
            #expect(try keyring(command) == nil, "\(command)")
        }
        #expect(try keyring("list") == "")
        try desktop.tell("lock")
        let locked = try keyring("status", "--json")
        #expect(locked == #"{"backend":"secret-service","state":"locked","agent":false}"# + "\n")
        #expect(try keyring("retrieve", "k", "--no-input") == nil)
    }

    /// The login opens the vault; without its keyring only the key file does.
    @Test func theKeyringOpensAVault() throws {
        let key = "\(desktop.path)/vault.key"
        #expect(try run("init", "--key-file", key) == "")
        #expect(try run("store", "k", input: "fake") == nil)
        #expect(try run("slot", "add", "secret-service", "--key-file", key) == "2\n")
        #expect(try run("store", "k", input: "fake") == "")
        #expect(try run("retrieve", "k") == "fake")
        // The key is no item of the user: the commands neither list nor move it.
        #expect(try keyring("list", "--all-services") == "")
        try desktop.tell("restart_keyring")
        #expect(try run("retrieve", "k") == "fake")
        try desktop.tell("lock")
        #expect(try run("retrieve", "k", "--no-input") == nil)
        #expect(try run("retrieve", "k", "--key-file", key) == "fake")
        try desktop.tell("unlock")
        #expect(try run("slot", "remove", "2", "--key-file", key) == "")
        #expect(try run("retrieve", "k") == nil)
        #expect(
            try desktop.run("secret-tool", "lookup", "service", "org.tokenvault.vault-key", mayFail: true)
                == "")
    }

    /// All that `vaultctl` says, also when it fails.
    private func all(_ words: String..., on bus: String? = nil) throws -> String {
        let address = "DBUS_SESSION_BUS_ADDRESS=\(bus ?? desktop.address)"
        return try #require(
            try desktop.run(
                ["/usr/bin/env", address, "/bin/bash", "-c", "\"$0\" \"$@\" 2>&1", vaultctl] + words,
                mayFail: true)
        )
    }

    @Test func whatElseOpensTheVaultIsTold() throws {
        let key = "\(desktop.path)/vault.key"
        #expect(try run("init", "--key-file", key) == "")
        #expect(try run("slot", "add", "secret-service", "--key-file", key) == "2\n")
        #expect(try all("status").contains("state:       unlocked\n"))
        try desktop.tell("lock")
        #expect(
            try all("retrieve", "k", "--no-input")
                == "vaultctl: the login keyring cannot open the vault: locked: give --key-file\n")
        #expect(try all("status").contains("state:       locked\n"))
        let away = try all("retrieve", "k", on: "unix:path=/nonexistent/bus")
        #expect(
            away.hasPrefix("vaultctl: the login keyring cannot open the vault: not available (")
                && away.hasSuffix("): give --key-file\n"), "\(away)")
        // A key that cannot be removed from the keyring now can be removed by the user later.
        let removed = try all("slot", "remove", "2", "--key-file", key, "--no-input")
        #expect(removed.contains("left in the keyring (locked): remove it with \"secret-tool clear service"))
        #expect(removed.contains("existing copies of the vault still open"))
        try desktop.tell("unlock")
        #expect(try run("slot", "add", "secret-service", "--key-file", key) == "3\n")
        #expect(try all("slot", "remove", "3", "--key-file", key) == "")
    }

    /// Figures of nothing would read as an empty keyring.
    @Test func aMoveThatCannotBeginTellsWhyAlone() throws {
        let key = "\(desktop.path)/vault.key"
        #expect(try run("init", "--key-file", key) == "")
        try desktop.tell("lock")
        let told = try all(
            "migrate", "--from", "secret-service", "--to", "file", "--key-file", key, "--no-input")
        #expect(told.hasPrefix("vaultctl: the source: locked"), "\(told)")
    }

    /// The first minute on a desktop, as a person types it.
    @Test func initOffersTheKeyring() throws {
        let created = try initialize(answer: "y")
        #expect(created[0] == "0" && !created[1].contains("horse"), "\(created)")
        #expect(try run(["store", "k"] + first, input: "fake") == "", "\(created)")
        #expect(try run(["retrieve", "k"] + first) == "fake")
        #expect(try run(["slot", "list"] + first)?.contains("secret-service") == true)
        try desktop.tell("lock")
        #expect(try run(["retrieve", "k", "--no-input"] + first) == nil)
    }

    @Test func initTakesNoForAnAnswer() throws {
        let created = try initialize(answer: "n")
        #expect(created[0] == "0", "\(created)")
        #expect(try run(["list", "--no-input"] + first) == nil)
        #expect(try desktop.tell("items", "service", "org.tokenvault.vault-key") == [""])
    }

    private var first: [String] {
        ["--vault", "\(desktop.path)/first.vault", "--state-dir", "\(desktop.path)/first.state"]
    }

    private func initialize(answer: String) throws -> [String] {
        try desktop.tell(
            "converse",
            ["6", vaultctl, "init"] + first + [
                "New passphrase: ", "fake horse", "again: ", "fake horse", "Type yes", "n",
                "keyring open the whole vault too", answer,
            ])
    }

    /// A vault's key that is moved into the vault, or deleted, would leave it shut for ever.
    @Test func keysOfVaultsAreNobodysItems() throws {
        let key = "\(desktop.path)/vault.key"
        let reserved = ["--service", "org.tokenvault.vault-key"]
        #expect(try run("init", "--key-file", key) == "")
        #expect(try run("slot", "add", "secret-service", "--key-file", key) == "2\n")
        #expect(try run("slot", "remove", "1", "--key-file", key) == "")
        #expect(try run("store", "k", input: "fake") == "")
        for words in [["list"], ["delete", "--all", "--yes"], ["retrieve", "k"]] {
            #expect(try desktop.run([vaultctl] + words + reserved + ["--backend", "secret-service"]) == nil)
        }
        #expect(
            try desktop.run(
                [vaultctl, "migrate", "--from", "secret-service", "--to", "file", "--delete"] + reserved)
                == nil)
        #expect(try run("retrieve", "k") == "fake")
    }

    @Test func itemsMoveIntoAVaultAndBack() throws {
        let key = "\(desktop.path)/vault.key"
        #expect(try run("init", "--key-file", key) == "")
        for (name, service) in [("a", "first"), ("b", "first"), ("c", "second")] {
            #expect(
                try keyring("store", name, "--service", service, "--label", name, input: "fake \(name)") == ""
            )
        }
        let there = try run(
            "migrate", "--from", "secret-service", "--to", "file", "--all-services", "--delete",
            "--key-file", key)
        #expect(there == "3 found, 3 copied, 0 already there, 3 verified, 3 deleted\n")
        #expect(try keyring("list", "--all-services") == "")
        #expect(
            try run("list", "--all-services", "--key-file", key) == "first\ta\nfirst\tb\nsecond\tc\n")

        // An item that may not leave the device stays, and the command reports it.
        #expect(try run("store", "here", "--service", "first", "--key-file", key, input: "fake") == "")
        #expect(
            try run(
                "migrate", "--from", "file", "--to", "secret-service", "--all-services", "--key-file", key)
                == nil)
        #expect(try keyring("list", "--all-services") == "first\ta\nfirst\tb\nsecond\tc\n")
        #expect(try keyring("retrieve", "c", "--service", "second") == "fake c")
        #expect(try keyring("info", "c", "--service", "second")?.contains("label:       c\n") == true)
        #expect(try run("retrieve", "here", "--service", "first", "--key-file", key) == "fake")
    }

    /// Without a desktop there is a reason, at once, and not a hang.
    @Test func withoutAServiceTheReasonIsGiven() throws {
        try desktop.tell("stop_keyring")
        #expect(try keyring("retrieve", "k") == nil)
        #expect(try keyring("status") == nil)
        let reason = try desktop.run(
            "bash", "-c", "\"$0\" retrieve k --backend secret-service 2>&1; echo $?", vaultctl)
        #expect(reason?.hasPrefix("vaultctl: not available (") == true, "\(reason ?? "")")
        #expect(reason?.contains("start a Secret Service") == true && reason?.hasSuffix("\n8\n") == true)
    }
}

/// The chooser among real stores.
@Suite(.tags(.desktop), .from(.usual)) struct DesktopChoiceTests {
    @Test func theKeyringComesFirstAndIsNotReplacedWhenItIsAway() async throws {
        let desktop = try PrivateDesktop.withKeyring()
        let keyring = StorageCandidate.secretService(desktop.configuration())
        let memory = InMemoryVault()
        let second = StorageCandidate(
            name: "second", probe: { () throws(TokenStorageError) in .present },
            storage: { (service) throws(TokenStorageError) in memory.storage(service: service) })
        let directory = FilePath("\(desktop.path)/choices")
        let chooser = StorageChooser([keyring, second], rememberingIn: directory)
        let choice = try await chooser.choose(service: "app")
        #expect(choice.name == "secret-service")
        try await choice.storage.store(token: "fake", for: "k")

        // A locked keyring is not absent: the choice fails, rather than choosing a store without the token.
        try desktop.tell("lock")
        for chooser in [chooser, StorageChooser([keyring, second], rememberingIn: nil)] {
            let error = await #expect(throws: TokenStorageError.self) {
                try await chooser.choose(service: "app")
            }
            #expect(error?.code == .locked)
        }
        // A chosen keyring that is missing is not replaced. A chooser that never chose takes the next
        // storage.
        try desktop.tell("stop_keyring")
        let error = await #expect(throws: TokenStorageError.self) {
            try await chooser.choose(service: "app")
        }
        #expect(error?.code == .unavailable)
        let other = try await StorageChooser([keyring, second], rememberingIn: nil).choose(service: "app")
        #expect(other.name == "second")
    }
}
