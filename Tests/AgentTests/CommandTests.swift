import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

/// `vaultctl` with an agent, each in a home of its own.
@Suite(.tags(.programs), .from(.usual)) struct CommandTests {
    let home: CommandHome

    init() throws { home = try CommandHome() }

    @Test func aKeyRotationReleasesTheVault() throws {
        let other = "\(home.path)/other.key"
        for (command, note) in [
            (["slot", "add", "key-file", other, "--scope", "all"], false),
            (["slot", "remove", "1", "--revoke", "--key-file", other, "--yes"], true),
        ] {
            try #require(try home.run("unlock", "--key-file", home.keyFile).status == 0)
            let changed = try home.run(command + (note ? [] : ["--key-file", home.keyFile]))
            #expect(changed.status == 0, "\(changed.error)")
            #expect(
                changed.error.contains("the agent had the vault's old keys and released it") == note,
                "\(changed.error)")
            #expect(try home.run("status", "--json").output.contains(#""agent":false"#) == note)
        }
        #expect(try home.run("unlock", "--key-file", other).status == 0)
        #expect(try home.run("status", "--json").output.contains(#""agent":true"#))
    }

    @Test func unlockStartsAnAgentThatServesTheOtherCommands() throws {
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        #expect(try home.run("store", "k", input: "not a real token").status == 0)
        #expect(try home.run("retrieve", "k").output == "not a real token")
        #expect(try home.run("list").output == "k\n")
        #expect(try home.run("list", "--all-services").output == "default\tk\n")
        #expect(try home.run("info", "k", "--json").status == 0)
        #expect(try home.run("set", "k", "--label", "a label").status == 0)
        #expect(try home.run("rename", "k", "l").status == 0)
        #expect(try home.run("retrieve", "l", "--json").output.contains(#""value":"not a real token""#))
        #expect(try home.run("delete", "l").status == 0)
        #expect(try home.run("retrieve", "l").status == 3)
    }

    @Test func theAgentKnowsWhatAnItemHadBefore() throws {
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        for value in ["one", "two", "three"] { #expect(try home.run("store", "k", input: value).status == 0) }
        let history = try home.run("history", "k").output.split(separator: "\n")
        #expect(history.count == 3)
        #expect(try home.run("undo", "k").status == 0)
        #expect(try home.run("retrieve", "k").output == "two")
        let first = try #require(history.last?.split(separator: "\t").first)
        #expect(try home.run("undo", "k", "--to", String(first)).status == 0)
        #expect(try home.run("retrieve", "k").output == "one")
        #expect(try home.run("undo", "k", "--to", "4000").status == 3)
        #expect(try home.run("history", "l").status == 3 && home.run("undo", "l").status == 3)
        #expect(try home.run("lock").status == 0)
        #expect(try home.run("undo", "k", "--no-input").status == 4)
        #expect(try home.run("history", "k", "--no-input").status == 4)
    }

    @Test func unlockOfAnUnlockedVaultAsksNothing() throws {
        #expect(try home.run("unlock", "--no-input").status == 4)
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        let again = try home.run("unlock", "--no-input")
        #expect(again.status == 0 && again.error.isEmpty, "\(again.error)")
        #expect(try home.run("unlock", "--no-input", "--for", "5m").status == 4)
        #expect(try home.run("lock").status == 0)
        #expect(try home.run("unlock", "--no-input").status == 4)
    }

    @Test func quietStatusSaysWhatTheAgentHolds() throws {
        #expect(try home.run("status", "--quiet").status == 4)
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        #expect(try home.run("store", "open", "--policy", "after-first-unlock", input: "fake").status == 0)
        let unlocked = try home.run("status", "--quiet")
        #expect(unlocked.status == 0 && unlocked.output.isEmpty)
        #expect(try home.run("lock").status == 0)
        #expect(try home.run("retrieve", "open").output == "fake")
        #expect(try home.run("status", "--quiet").status == 4)
    }

    @Test func aLockThatLocksNothingSaysSo() throws {
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        let other = "\(home.path)/other.vault"
        #expect(try home.run("init", "--vault", other, "--key-file", home.keyFile).status == 0)
        let again = try home.run("lock", "--vault", other)
        #expect(again.status == 0, "\(again.error)")
        #expect(
            again.error.contains("the agent does not hold the vault, so nothing was locked"), "\(again.error)"
        )
    }

    @Test func aPlaceThatIsTooLongIsSaidAtOnce() throws {
        let long = "XDG_RUNTIME_DIR=/tmp/" + String(repeating: "long", count: 100)
        for command in [["retrieve", "k"], ["unlock", "--key-file", home.keyFile], ["lock"]] {
            // If the command kept trying for this long, it would end with another status.
            let outcome = try home.run(command + ["--timeout", "300"], with: [long])
            #expect(outcome.status == 64 && outcome.error.contains("too long"), "\(outcome.error)")
        }
    }

    /// A home that is no text is used, and not another one that is.
    @Test func directoriesNeedNotBeText() throws {
        let script = """
            odd=$(printf '%s/odd-\\377' "$HOME") && mkdir -m 700 "$odd" || exit
            export XDG_DATA_HOME=$odd XDG_STATE_HOME=$odd
            "$0" init --key-file "$HOME/odd.key" && "$0" unlock --key-file "$HOME/odd.key" || exit
            printf odd | "$0" store k && "$0" retrieve k && [ -f "$odd/tokenvault/default.vault" ] || exit
            # No agent is there, and none elsewhere is asked.
            export XDG_RUNTIME_DIR=$odd
            "$0" retrieve k --no-input; [ $? = 4 ]
            """
        let outcome = try Program.capture(
            "/bin/bash", ["-c", script, Program.beside("vaultctl")], environment: home.environment)
        #expect(outcome.status == 0 && outcome.output == "odd", "\(outcome)")
        #expect(try home.run("list", "--key-file", home.keyFile).output.isEmpty)
    }

    /// What the agent is made of would end it by a signal.
    @Test func anAgentWithoutDescriptorsSaysSo() throws {
        let script = "ulimit -n 14; exec \"$0\" --directory \"$HOME/run/tokenvault\""
        let outcome = try Program.capture(
            "/bin/bash", ["-c", script, Program.beside("vaultctl-agent")], environment: home.environment)
        #expect(outcome.status == 8 && outcome.error.contains("ulimit -n"), "\(outcome)")
    }

    @Test func lockedIsFinalUnlessTheLineSaysOtherwise() throws {
        _ = try home.run("unlock", "--key-file", home.keyFile)
        _ = try home.run("store", "dark", input: "a")
        _ = try home.run("store", "open", "--policy", "after-first-unlock", input: "b")
        #expect(try home.run("lock").status == 0)
        let locked = try home.run("retrieve", "dark")
        #expect(locked.status == 4 && locked.output.isEmpty)
        #expect(try home.run("retrieve", "open").output == "b")
        let list = try home.run("list")
        #expect(list.status == 4 && list.output == "open\n" && list.error.contains("1 item is"))
        // A key file in the environment does not bypass the agent. A key file on the command line does.
        let variable = "VAULTCTL_KEY_FILE=\(home.keyFile)"
        let passedOver = try home.run("retrieve", "dark", with: [variable])
        #expect(passedOver.status == 4)
        #expect(
            passedOver.error
                == "vaultctl: locked by the agent, which holds the vault; VAULTCTL_KEY_FILE is not used while an agent holds it: "
                + "run \"vaultctl unlock\", or give --key-file or --no-agent\n")
        let words = try home.file("words", "fake words")
        #expect(
            try home.run("retrieve", "dark", with: ["VAULTCTL_PASSPHRASE_FILE=\(words)"]).error
                .contains("VAULTCTL_PASSPHRASE_FILE is not used while an agent holds it"))
        #expect(try home.run("list", with: [variable]).error.contains("VAULTCTL_KEY_FILE is not used"))
        #expect(!locked.error.contains("is not used while"))
        #expect(try home.run("retrieve", "dark", "--no-agent", with: [variable]).output == "a")
        #expect(try home.run("retrieve", "dark", "--key-file", home.keyFile).output == "a")
        #expect(try home.run("retrieve", "dark", "--no-agent", "--no-input").status == 4)
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        #expect(try home.run("retrieve", "dark").output == "a")
    }

    /// What is hidden is counted; nothing is not locked.
    @Test func anEmptyVaultHasNothingToHide() throws {
        _ = try home.run("unlock", "--key-file", home.keyFile)
        #expect(try home.run("lock").status == 0)
        let list = try home.run("list")
        #expect(list.status == 0 && list.output.isEmpty && list.error.isEmpty, "\(list)")
        let help = try home.run("help", "list").output.split { $0.isWhitespace }.joined(separator: " ")
        #expect(help.contains("nothing is hidden, as in an empty vault, the exit status is 0."), "\(help)")
    }

    @Test func statusTellsWhatTheAgentHolds() throws {
        #expect(try home.run("status", "--json").output.contains(#""state":"locked","agent":false"#))
        _ = try home.run("unlock", "--key-file", home.keyFile, "--for", "2h")
        _ = try home.run("store", "k", input: "a")
        let unlocked = try home.run("status", "--json").output
        #expect(unlocked.contains(#""state":"unlocked","items":1,"agent":true,"lockAfter":7200"#))
        #expect(unlocked.contains(#""rollbackProtection":"anchored","device":"enrolled""#))
        #expect(
            try home.run("status").output.contains("agent:       holds it, locks it after 2h without use")
        )
        _ = try home.run("store", "open", "--policy", "after-first-unlock", input: "b")
        _ = try home.run("lock", "--all")
        #expect(try home.run("status", "--json").output.contains(#""state":"afterFirstUnlock""#))
        // The text for people says that the vault is locked.
        let told = try home.run("status").output
        #expect(
            told.contains("state:       locked, except for after-first-unlock items\n"), "\(told)"
        )
        #expect(told.contains("last opened: by slot ") && !told.contains("unlocked"), "\(told)")
        _ = try home.run("delete", "open")
        _ = try home.run("lock")
        #expect(try home.run("status", "--json").output.contains(#""state":"locked","agent":true"#))
        let closed = try home.run("status").output
        #expect(closed.contains("state:       locked\nagent:       keeps it locked"), "\(closed)")
        let past = try home.run("status", "--json", "--no-agent").output
        #expect(past.contains(#""state":"locked","agent":false"#))
    }

    @Test func lockingWithoutAnAgentIsDone() throws {
        for words in [["lock"], ["lock", "--all"]] {
            let locked = try home.run(words)
            #expect(locked.status == 0 && locked.error.contains("nothing was locked"), "\(locked.error)")
        }
        // The command starts no agent.
        #expect(try SmallFile.exists(FilePath(home.path).appending("run/tokenvault/agent.sock")) == false)
    }

    @Test func whatCannotBeUnlockedSaysWhy() throws {
        let wrong = try home.file("wrong.key", "another unreal key 0123456789abcdef0123456789abcdef")
        #expect(try home.run("unlock", "--key-file", wrong).status == 5)
        let words = try home.file("words", "fake words\n")
        let passphrase = try home.run("unlock", "--passphrase-file", words)
        #expect(passphrase.status == 5)
        #expect(
            passphrase.error
                == "vaultctl: wrong passphrase or key (the vault opens with a key file, not with a passphrase): "
                + "give --key-file FILE\n")
        let alone = try home.run("unlock", "--no-input", input: "fake words\n")
        #expect(alone.status == 4)
        #expect(
            alone.error
                == "vaultctl: locked, and the vault opens with a key file, not with a passphrase: give --key-file FILE\n"
        )
        #expect(try home.run("unlock", "--key-file", home.keyFile, "--for", "soon").status == 64)
        #expect(try home.run("unlock", "--key-file", home.keyFile, "--for", "0s").status == 64)
        #expect(try home.run("unlock", "--key-file", home.keyFile, "--no-agent").status == 64)
        #expect(
            try home.run("unlock", "--key-file", home.keyFile, "--vault", "\(home.path)/no.vault").status == 8
        )
        #expect(try home.run("lock", "--backend", "memory").status == 64)
        #expect(try home.run("status", "--json").output.contains(#""agent":false"#))
    }

    @Test func aVaultThatIsDestroyedIsLetGo() throws {
        _ = try home.run("unlock", "--key-file", home.keyFile)
        _ = try home.run("store", "k", input: "a")
        #expect(try home.run("destroy", "--yes").status == 0)
        #expect(try home.run("retrieve", "k").status == 8)
        #expect(try home.run("init", "--key-file", home.keyFile).status == 0)
        #expect(try home.run("retrieve", "k", "--key-file", home.keyFile).status == 3)
        #expect(try home.run("status", "--json").output.contains(#""agent":false"#))
    }

    @Test func aPlantedSocketIsRefusedAndCanBePassedBy() throws {
        let directory = FilePath(home.path).appending("run/tokenvault")
        try PosixDirectory.makeAll(directory)
        try SmallFile.create(directory.appending("agent.sock"), [1])
        // No agent answers there. Commands open the vault themselves, but cannot start an agent.
        #expect(try home.run("list", with: ["VAULTCTL_KEY_FILE=\(home.keyFile)"]).status == 0)
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 8)
        chmod(directory.string, 0o777)
        let open = try home.run("list", with: ["VAULTCTL_KEY_FILE=\(home.keyFile)"])
        #expect(open.status == 8 && open.error.contains("agent"))
        #expect(try home.run("list", "--no-agent", with: ["VAULTCTL_KEY_FILE=\(home.keyFile)"]).status == 0)
    }

    @Test func theAgentCanBeEndedAndNothingIsHeldThen() throws {
        _ = try home.run("unlock", "--key-file", home.keyFile)
        _ = try home.run("store", "k", "--policy", "after-first-unlock", input: "a")
        #expect(try home.run("agent", "--stop").status == 0)
        #expect(try home.run("retrieve", "k", "--no-input").status == 4)
        #expect(try home.run("agent", "--stop").status == 0)
        // The next agent holds no vault.
        _ = try home.run("unlock", "--key-file", home.keyFile, "--vault", "\(home.path)/no.vault")
        #expect(try home.run("retrieve", "k", "--no-input").status == 4)
    }

    @Test func severalUnlocksAtOnceStartOneAgent() async throws {
        let home = home
        try await withThrowingTaskGroup(of: Int32.self) { group in
            for _ in 0..<6 {
                group.addTask { try home.run("unlock", "--key-file", home.keyFile).status }
            }
            for try await status in group { #expect(status == 0) }
        }
        #expect(try home.run("status", "--json").output.contains(#""agent":true"#))
    }

    @Test func oneThatIsStoppedIsNamed() throws {
        let agent = try home.startAgent()
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        kill(agent, SIGSTOP)
        let outcome = try home.run("retrieve", "k", "--timeout", "1")
        #expect(outcome.status == 10, "\(outcome)")
        #expect(
            outcome.error.contains("the agent, process \(agent), did not answer")
                && outcome.error.contains("--no-agent"), "\(outcome.error)")
        #expect(try home.run("list", "--no-agent", "--key-file", home.keyFile).status == 0)
        kill(agent, SIGCONT)
        kill(agent, SIGTERM)
        #expect(Program.wait(for: agent) == 0)
    }

    @Test func theAgentInTheForegroundEndsBySignal() throws {
        let agent = try home.startAgent()
        #expect(try AgentControl.isRunning(at: home.place))
        let second = try home.run("agent")
        #expect(second.status == 9)
        #expect(
            second.error
                == "vaultctl-agent: another agent already runs in \(home.path)/run/tokenvault: use it, or end it first: "
                + "\"vaultctl agent --stop\"\n")
        kill(agent, SIGTERM)
        #expect(Program.wait(for: agent) == 0)
        #expect(try AgentControl.isRunning(at: home.place) == false)
    }
}

/// A home directory with a vault that a key file opens, and a runtime directory of its own.
final class CommandHome: Sendable {
    let path: String
    var keyFile: String { path + "/vault.key" }
    var place: AgentEndpoint { AgentEndpoint(directory: FilePath(path).appending("run/tokenvault")) }

    init() throws {
        var template = Array("/tmp/vaultctl-agent-XXXXXX".utf8CString)
        path = try #require(mkdtemp(&template).map { String(cString: $0) })
        // The mode is that of a login's directory.
        try #require(mkdir(path + "/run", 0o700) == 0)
        try #require(try run("init", "--key-file", keyFile).status == 0)
    }

    deinit {
        _ = try? AgentControl.stop(at: place)
        _ = try? Program.run("/bin/rm", ["-rf", path])
    }

    typealias Outcome = Program.Outcome

    func file(_ name: String, _ text: String) throws -> String {
        try SmallFile.create(FilePath(path).appending(name), Array(text.utf8))
        return "\(path)/\(name)"
    }

    var environment: [String] {
        ["HOME=\(path)", "XDG_RUNTIME_DIR=\(path)/run", "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/no/bus"]
    }

    /// Runs `vaultctl` to its end.
    func run(_ arguments: String..., input: String = "", with extra: [String] = []) throws -> Outcome {
        try run(arguments, input: input, with: extra)
    }

    /// The same, of a list of words.
    func run(_ arguments: [String], input: String = "", with extra: [String] = []) throws -> Outcome {
        try Program.capture(
            Program.beside("vaultctl"), arguments, environment: extra + environment, input: input)
    }

    /// Starts `vaultctl agent` and waits until it says that it takes clients.
    func startAgent(_ arguments: String..., with extra: [String] = []) throws -> pid_t {
        let ends = try FileDescriptor.pipe()
        for end in [ends.readEnd, ends.writeEnd] {
            try #require(fcntl(end.rawValue, F_SETFD, FD_CLOEXEC) == 0)
        }
        defer { try? ends.readEnd.close() }
        let started = Result {
            try Program.start(
                Program.beside("vaultctl"), ["agent", "--ready-fd", "3"] + arguments,
                environment: extra + environment, inheriting: [(ends.writeEnd.rawValue, 3)])
        }
        try ends.writeEnd.close()
        var byte: UInt8 = 0
        try #require(read(ends.readEnd.rawValue, &byte, 1) == 1, "the agent did not start")
        return try started.get()
    }
}
