import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform

/// `vaultctl` and several keyrings: what it finds, how it ends, and how it makes one, with nothing to ask.
@Suite(.tags(.desktop), .from(.usual)) struct KeyringCommandTests {
    private let desktop: PrivateDesktop
    private let other: String
    private static let login = "/org/freedesktop/secrets/collection/login"
    private static let password = "fake horse"

    init() throws {
        desktop = try PrivateDesktop.withKeyring()
        other = try #require(try desktop.tell("create_collection", "Other", Self.password).first)
    }

    /// All that `vaultctl` says in the keyring, and its exit status in a line of its own. Variables come before the
    /// command.
    private func run(_ words: String..., input: String = "") throws -> String {
        let variables = words.prefix { $0.contains("=") }
        let command = words.dropFirst(variables.count)
        let backend = ["migrate", "keyring"].contains(command.first) ? [] : ["--backend", "secret-service"]
        let output = try desktop.run(
            ["/usr/bin/env"] + variables + ["/bin/bash", "-c", "\"$0\" \"$@\" --no-input 2>&1; echo \"=$?\""]
                + [vaultctl] + command + backend, input: input)
        return try #require(output)
    }

    @Test func anItemInAnotherKeyringIsFoundReplacedAndDeleted() throws {
        #expect(try run("store", "k", "--collection", "Other", input: "fake") == "=0\n")
        #expect(try desktop.tell("items_in", other, "account", "k") != [""])
        #expect(try run("retrieve", "k") == "fake=0\n")
        #expect(try run("retrieve", "k", "--collection", "login") == "fake=0\n")
        #expect(try run("store", "k", input: "new") == "=0\n")
        #expect(try run("VAULTCTL_COLLECTION=Other", "retrieve", "k") == "new=0\n")
        #expect(try desktop.tell("items_in", Self.login) == [""])
        #expect(try run("list") == "k\n=0\n")
        #expect(try run("list", "--collection", "Missing") == "k\n=0\n")
        #expect(try run("delete", "k") == "=0\n")
        #expect(try desktop.tell("items_in", other) == [""])
        #expect(try run("retrieve", "k").hasSuffix("=3\n"))
    }

    @Test func theVariableSaysWhereNewItemsGo() throws {
        #expect(try run("VAULTCTL_COLLECTION=Other", "store", "a", input: "fake") == "=0\n")
        #expect(
            try run("VAULTCTL_COLLECTION=Other", "store", "b", "--collection", "Login", input: "fake")
                == "=0\n")
        #expect(try desktop.tell("items_in", other, "account", "a") != [""])
        #expect(try desktop.tell("items_in", Self.login, "account", "b") != [""])
        let missing = try run("VAULTCTL_COLLECTION=Missing", "store", "c", input: "fake")
        #expect(missing.contains("there is no keyring of that name"))
        #expect(missing.contains("vaultctl keyring create --label") && missing.hasSuffix("=8\n"))
        #expect(try run("retrieve", "c", "--collection", "").hasSuffix("=64\n"))
    }

    @Test func aMatchInALockedKeyringIsFour() throws {
        #expect(try run("store", "k", "--collection", "Other", input: "fake") == "=0\n")
        #expect(try run("store", "here", input: "fake") == "=0\n")
        try desktop.tell("restart_keyring")
        #expect(try run("retrieve", "k").hasSuffix("=4\n"))
        #expect(try run("retrieve", "k", "--json").hasSuffix("=4\n"))
        #expect(try run("info", "k").hasSuffix("=4\n"))
        #expect(try run("delete", "k").hasSuffix("=4\n"))
        #expect(try run("store", "k", input: "new").hasSuffix("=4\n"))
        #expect(try run("retrieve", "absent").hasSuffix("=3\n"))
        for words in [["list"], ["list", "--all-services"]] {
            let listed = words.count == 1 ? try run("list") : try run("list", "--all-services")
            #expect(listed.hasPrefix(words.count == 1 ? "here\n" : "default\there\n"))
            #expect(listed.contains("1 item is not shown while locked") && listed.hasSuffix("=4\n"))
        }
        // The same holds without a keyring for new items.
        let listed = try run("list", "--collection", "Missing")
        #expect(listed.hasPrefix("here\n") && listed.hasSuffix("=4\n"), "\(listed)")
        try desktop.tell("unlock", other, Self.password)
        #expect(try run("retrieve", "k") == "fake=0\n")
        #expect(try run("list") == "here\nk\n=0\n")
    }

    /// A container: a keyring's daemon, no keyring, and nothing to ask.
    @Test func aMissingDefaultKeyringIsMadeByTheCommandThatTheErrorNames() throws {
        try desktop.tell("delete_collection", other)
        try desktop.tell("delete_collection", Self.login)
        let failed = try run("store", "k", input: "fake")
        #expect(failed.contains("no default keyring") && failed.hasSuffix("=8\n"), "\(failed)")
        #expect(failed.contains("\"vaultctl keyring create\""))
        let file = "\(desktop.path)/passphrase"
        try SmallFile.create(FilePath(file), Array("fake battery\n".utf8))
        #expect(try run("keyring", "create").hasSuffix("=4\n"))
        #expect(try run("keyring", "create", "--passphrase-file", file) == "=0\n")
        #expect(try run("store", "k", input: "fake") == "=0\n")
        #expect(try run("retrieve", "k") == "fake=0\n")
        #expect(try run("keyring", "create", "--passphrase-file", file).hasSuffix("=9\n"))
        #expect(
            try run("keyring", "create", "--label", "Work", "--passphrase-fd", "0", "--json", input: "fake\n")
                == #"{"label":"Work","default":false}"# + "\n=0\n")
        #expect(try run("keyring", "create", "--label", "Work", "--passphrase-file", file).hasSuffix("=9\n"))
        #expect(try run("VAULTCTL_COLLECTION=Work", "store", "w", input: "fake") == "=0\n")
        #expect(
            try run("keyring", "create", "--label", "No", "--passphrase-fd", "0", input: "\n").hasSuffix(
                "=64\n"))
        // Only the given passphrase opens the keyring.
        try desktop.tell("restart_keyring")
        #expect(try run("retrieve", "k").hasSuffix("=4\n"))
        let made = "/org/freedesktop/secrets/collection/Default_5fkeyring"
        try desktop.tell("unlock", made, "fake battery")
        #expect(try run("retrieve", "k") == "fake=0\n")
        #expect(try run("retrieve", "w").hasSuffix("=4\n"))
    }

    @Test func aServiceThatMakesKeyringsWithItsPromptAloneSaysSo() throws {
        try desktop.tell("stop_keyring")
        try desktop.start(fake: ["no-default"])
        let service = SecretService(configuration: desktop.configuration(allowsPlainSession: true))
        let error = #expect(throws: TokenStorageError.self) {
            try service.createKeyringBlocking(label: "New", passphrase: Secret(utf8: "fake"))
        }
        #expect(error?.code == .unavailable && error?.advice?.contains("prompt") == true)
        #expect(code { try service.createKeyringBlocking() } == .locked)
    }

    // MARK: - Other programs

    private func makeTheirs(_ service: String, _ account: String?, _ secret: String) throws {
        let names = ["service", service] + (account.map { ["account", $0] } ?? ["name", "fake"])
        #expect(
            try desktop.run(["secret-tool", "store", "--label=theirs"] + names, input: secret) != nil)
    }

    @Test func anItemOfAnotherProgramIsReadWhereThereIsNoneOfOurs() throws {
        try makeTheirs("default", "k", "theirs\n")
        #expect(try run("retrieve", "k") == "theirs\n=0\n")
        #expect(try run("retrieve", "k", "--json").contains(#""value":"theirs\n""#))
        #expect(try run("info", "k").hasSuffix("=0\n"))
        #expect(try run("delete", "k").hasSuffix("=3\n"))
        #expect(try run("list") == "=0\n")
        // The empty output of a failed producer replaces no value that retrieve prints. A key with such a
        // value is not free.
        #expect(try run("store", "k").hasSuffix("=1\n"))
        #expect(try run("store", "k", "--if-absent", input: "ours").hasSuffix("=9\n"))
        #expect(try run("retrieve", "k") == "theirs\n=0\n")
        #expect(try run("store", "k", input: "ours") == "=0\n")
        #expect(try run("retrieve", "k") == "ours=0\n")
        #expect(try run("delete", "k") == "=0\n")
        #expect(try run("retrieve", "k") == "theirs\n=0\n")
        try desktop.tell("lock")
        #expect(try run("retrieve", "k").hasSuffix("=4\n"))
        #expect(try run("retrieve", "absent").hasSuffix("=4\n"))
    }

    /// Names that TokenVault writes in Base64 stand there as they are when another program wrote them.
    @Test(arguments: [
        "", "two\nlines", "tokenvault:base64:", "tokenvault:base64:Zm9v", "tokenvault:base64:%",
    ])
    func anItemOfAnotherProgramIsReadWhateverItsNames(_ name: String) throws {
        try makeTheirs(name, name, "theirs")
        try makeTheirs(name, "plain", "of the service")
        try makeTheirs(name, nil, "nameless")
        #expect(try run("retrieve", name, "--service", name) == "theirs=0\n")
        #expect(try run("info", name, "--service", name).hasSuffix("=0\n"))
        #expect(try run("retrieve", "plain", "--service", name) == "of the service=0\n")
        #expect(try run("store", name, "--service", name, input: "ours") == "=0\n")
        #expect(try run("retrieve", name, "--service", name) == "ours=0\n")
        #expect(try run("delete", name, "--service", name) == "=0\n")
        #expect(try run("retrieve", name, "--service", name) == "theirs=0\n")
        let key = "\(desktop.path)/vault.key"
        #expect(try desktop.run(vaultctl, "init", "--key-file", key) == "")
        let ends = ["--from", "secret-service", "--to", "file", "--key-file", key]
        #expect(
            try desktop.run([vaultctl, "migrate", "--all-services"] + ends)
                == "2 found, 2 copied, 0 already there, 2 verified, 0 deleted, 1 passed over\n")
        #expect(
            try desktop.run(vaultctl, "retrieve", name, "--service", name, "--key-file", key) == "theirs")
        try desktop.tell("lock")
        #expect(try run("retrieve", name, "--service", name).hasSuffix("=4\n"))
    }

    /// What TokenVault writes for one name is another name of another program.
    @Test func anEncodedNameIsNoNameOfAnother() throws {
        let written = "tokenvault:base64:"
        #expect(
            try run("store", "k", "--service", "", "--collection", "Other", input: "ours") == "=0\n")
        try makeTheirs(written, "k", "theirs")
        #expect(try run("retrieve", "k", "--service", "") == "ours=0\n")
        #expect(try run("retrieve", "k", "--service", written) == "theirs=0\n")
        try desktop.tell("lock", other)
        #expect(try run("retrieve", "k", "--service", written) == "theirs=0\n")
        #expect(try run("retrieve", "k", "--service", "").hasSuffix("=4\n"))
    }

    @Test func aLockedItemOfAnotherProgramIsFour() throws {
        let theirs = ["xdg:schema", "com.example.Theirs", "service", "default", "account", "k"]
        try desktop.tell("create_in", [other, "theirs", "fake"] + theirs)
        try desktop.tell("restart_keyring")
        #expect(try run("retrieve", "k").hasSuffix("=4\n"))
        #expect(try run("info", "k").hasSuffix("=4\n"))
        #expect(try run("retrieve", "absent").hasSuffix("=3\n"))
        // A new item of ours does not wait for the other program's item.
        #expect(try run("store", "k", input: "ours") == "=0\n")
    }

    @Test func aMoveTakesItemsOfOtherProgramsAndCountsWhatItPassesOver() throws {
        let key = "\(desktop.path)/vault.key"
        #expect(try desktop.run(vaultctl, "init", "--key-file", key) == "")
        try makeTheirs("s", "theirs", "of theirs")
        try makeTheirs("s", "both", "of theirs")
        try makeTheirs("s", nil, "nameless")
        try makeTheirs("another", nil, "nameless")
        #expect(try run("store", "both", "--service", "s", input: "of ours") == "=0\n")
        #expect(
            try run("store", "there", "--service", "s", "--collection", "Other", input: "of ours") == "=0\n")
        let ends = ["--from", "secret-service", "--to", "file", "--key-file", key]
        let one = try desktop.run([vaultctl, "migrate", "--service", "s"] + ends)
        #expect(one == "3 found, 3 copied, 0 already there, 3 verified, 0 deleted, 2 passed over\n")
        let all = try desktop.run([vaultctl, "migrate", "--all-services", "--delete"] + ends)
        #expect(
            all
                == "3 found, 0 copied, 3 already there, 3 verified, 2 deleted, 1 kept for other programs, 3 passed over\n"
        )
        #expect(
            try desktop.run(vaultctl, "list", "--service", "s", "--key-file", key) == "both\ntheirs\nthere\n")
        for (name, secret) in [("both", "of ours"), ("theirs", "of theirs"), ("there", "of ours")] {
            #expect(
                try desktop.run(vaultctl, "retrieve", name, "--service", "s", "--key-file", key) == secret)
        }
        // The other program's items stay.
        for name in ["theirs", "both"] {
            #expect(try desktop.run("secret-tool", "lookup", "service", "s", "account", name) == "of theirs")
        }
        // The count includes an item in a locked keyring.
        try desktop.tell("create_in", other, "theirs", "fake", "service", "s", "account", "locked")
        try desktop.tell("restart_keyring")
        let locked = try #require(
            try desktop.run(
                [
                    "/bin/bash", "-c", "\"$0\" \"$@\" 2>&1; echo \"=$?\"", vaultctl, "migrate",
                    "--all-services", "--no-input",
                ]
                    + ends))
        #expect(
            locked.hasPrefix(
                "1 found, 0 copied, 1 already there, 1 verified, 0 deleted, 1 not readable, 3 passed over\n"))
        #expect(locked.hasSuffix("=4\n"), "\(locked)")
    }
}
