import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVaultPlatform

/// A user without `XDG_RUNTIME_DIR`. Any other user can guess the agent's place in `/tmp` and take it first.
@Suite(.tags(.programs), .from(.usual), .enabled(if: geteuid() == 0, "only root can act as another user"))
struct PlantedPlaceTests {
    let person: Person

    init() throws { person = try Person() }

    enum Plant: CaseIterable {
        case directory, link, file
    }

    private func plant(_ plant: Plant) throws {
        let place = person.place
        switch plant {
        case .directory: try #require(mkdir(place, 0o755) == 0)
        case .link: try #require(symlink(person.home, place) == 0)
        case .file: try SmallFile.create(FilePath(place), [])
        }
        try #require(lchown(place, Person.nobody, Person.nobody) == 0)
    }

    @Test(arguments: Plant.allCases)
    func whoTakesThePlaceFirstKeepsNobodyFromTheVault(_ plant: Plant) throws {
        try self.plant(plant)
        let store = try person.run("store", "k", input: "not a real token")
        #expect(store.status == 0, "\(store.error)")
        let lines = store.error.split(separator: "\n")
        #expect(lines.count == 1 && lines[0].hasPrefix("vaultctl: note: "), "\(store.error)")
        #expect(store.error.contains("XDG_RUNTIME_DIR"))
        #expect(try person.run("retrieve", "k").output == "not a real token")
        #expect(try person.run("list", "--all-services").output == "default\tk\n")
        let status = try person.run("status", "--json")
        #expect(status.status == 0 && status.output.contains(#""agent":false"#), "\(status.error)")
        // A command that does not need the agent does not mention the agent.
        #expect(try person.run("list", "--no-agent").error.isEmpty)
        // A command about the agent gives the reason why there is no agent.
        for words in [["unlock"], ["lock"], ["lock", "--all"], ["agent"], ["agent", "--stop"]] {
            let refused = try person.run(words)
            #expect(refused.status == 8, "\(words): \(refused.error)")
            #expect(refused.error.contains("another user"), "\(words): \(refused.error)")
            #expect(refused.error.contains("XDG_RUNTIME_DIR"), "\(words): \(refused.error)")
        }
        #expect(try person.run("delete", "k").status == 0)
    }

    /// A mistake of this user is no attack, and the directory is not another user's. The program refuses it.
    @Test func anOpenDirectoryOfOnesOwnIsRefusedAsEver() throws {
        try #require(mkdir(person.place, 0o700) == 0 && chmod(person.place, 0o777) == 0)
        try #require(chown(person.place, person.user, person.user) == 0)
        let list = try person.run("list")
        #expect(list.status == 8 && list.error.contains("agent"), "\(list.error)")
    }

    @Test func aPlaceThatWasNamedIsNotPassedBy() throws {
        let named = ["XDG_RUNTIME_DIR=\(person.home)"]
        #expect(try person.run(["unlock"], with: named).status == 0)
        #expect(try person.run(["agent", "--stop"], with: named).status == 0)
        try #require(chown("\(person.home)/tokenvault", Person.nobody, Person.nobody) == 0)
        let list = try person.run(["list"], with: named)
        #expect(list.status == 8, "\(list.error)")
    }

    @Test func lockedIsFinalInThePlaceThatAnybodyCanGuess() throws {
        #expect(try person.run("unlock").status == 0)
        #expect(try person.run("store", "k", input: "a").status == 0)
        #expect(try person.run("lock").status == 0)
        #expect(try person.run("retrieve", "k").status == 4)
        #expect(try SmallFile.exists(FilePath(person.place).appending("agent.sock")))
    }

    @Test func theDirectoryOfTheLoginIsUsedWhereItIsNotNamed() throws {
        let runtime = "/run/user/\(person.user)"
        try PosixDirectory.makeAll(FilePath(runtime).removingLastComponent())
        try #require(mkdir(runtime, 0o755) == 0)
        defer { _ = try? Program.run("/bin/rm", ["-rf", runtime]) }
        let socket = FilePath(runtime).appending("tokenvault/agent.sock")
        // The directory belongs to root first, then it is open to others, then it is as required.
        for (owner, mode) in [(0, mode_t(0o700)), (person.user, 0o755), (person.user, 0o700)] {
            try #require(chown(runtime, owner, owner) == 0 && chmod(runtime, mode) == 0)
            #expect(try person.run("unlock").status == 0)
            let isUsed = owner == person.user && mode == 0o700
            #expect(try SmallFile.exists(socket) == isUsed, "\(owner), \(mode)")
            #expect(try person.run("status", "--json").output.contains(#""agent":true"#))
            #expect(try person.run("agent", "--stop").status == 0)
        }
    }
}

/// An agent that began while there was no other place, and the directory of a login that comes into being afterwards.
@Suite(.tags(.programs), .from(.usual), .enabled(if: geteuid() == 0, "only root can make one"))
struct LatePlaceTests {
    let person: Person
    private var runtime: String { "/run/user/\(person.user)" }

    init() throws {
        person = try Person()
        try #require(try person.run("unlock").status == 0)
        try #require(try person.run("store", "k", "--policy", "when-unlocked", input: "a").status == 0)
        try PosixDirectory.makeAll(FilePath(runtime).removingLastComponent())
        try #require(mkdir(runtime, 0o700) == 0 && chown(runtime, person.user, person.user) == 0)
    }

    private func removeRuntime() { _ = try? Program.run("/bin/rm", ["-rf", runtime]) }

    @Test(arguments: [false, true], [["lock"], ["lock", "--all"], ["agent", "--stop"]])
    func itIsFoundByThoseWhoComeLater(isNamed: Bool, words: [String]) throws {
        let environment = isNamed ? ["XDG_RUNTIME_DIR=\(runtime)"] : []
        defer { removeRuntime() }
        let retrieved = try person.run(["retrieve", "k"], with: environment)
        #expect(retrieved.output == "a", "\(retrieved.error)")
        #expect(try person.run(words, with: environment).status == 0)
        // Without the runtime directory, status asks the agent at its own place.
        try #require(try Program.run("/bin/rm", ["-rf", runtime]) == 0)
        let state = try person.run("status", "--json").output
        #expect(state.contains(#""agent":\#(words[0] == "lock")"#), "\(state)")
        // Without an agent, the key file of the environment opens the vault.
        if words[0] == "lock" { #expect(!state.contains(#""state":"unlocked""#), "\(state)") }
    }

    /// A terminal of a snap names a directory of its own below the login's.
    @Test(arguments: [false, true], [["lock"], ["lock", "--all"], ["agent", "--stop"]])
    func aTerminalOfASnapIsNoOtherPlace(isStartedThere: Bool, words: [String]) throws {
        defer { removeRuntime() }
        let snap = "\(runtime)/snap.example"
        try #require(mkdir(snap, 0o700) == 0 && chown(snap, person.user, person.user) == 0)
        let inSnap = ["XDG_RUNTIME_DIR=\(snap)"]
        if isStartedThere {
            // Otherwise the command would use the agent that runs in `/tmp`.
            #expect(try person.run("agent", "--stop").status == 0)
            #expect(try person.run(["unlock"], with: inSnap).status == 0)
        }
        let outcome = try person.run(words, with: isStartedThere ? ["XDG_RUNTIME_DIR=\(runtime)"] : inSnap)
        #expect(outcome.status == 0 && outcome.error.isEmpty, "\(outcome.error)")
        let state = try person.run(["status", "--json"], with: inSnap).output
        #expect(state.contains(#""agent":\#(words[0] == "lock")"#), "\(state)")
        if words[0] == "lock" { #expect(!state.contains(#""state":"unlocked""#), "\(state)") }
        _ = try person.run(["agent", "--stop"], with: inSnap)
    }

    /// A shell that `su` started names the directory of the user before. The agent of this user is in its own place.
    @Test(arguments: [["lock"], ["lock", "--all"], ["agent", "--stop"]])
    func theDirectoryOfAnotherUserHidesNoAgent(_ words: [String]) throws {
        defer { removeRuntime() }
        let others = "/run/user/before-\(person.user)"
        try #require(mkdir(others, 0o700) == 0 && chown(others, Person.nobody, Person.nobody) == 0)
        defer { _ = try? Program.run("/bin/rm", ["-rf", others]) }
        let outcome = try person.run(words, with: ["XDG_RUNTIME_DIR=\(others)"])
        let state = try person.run("status", "--json").output
        #expect(state.contains(#""agent":\#(words[0] == "lock")"#), "\(outcome.error) \(state)")
        if words[0] == "lock" {
            #expect(!state.contains(#""state":"unlocked""#), "\(outcome.error) \(state)")
        }
    }

    /// The agent still runs in a directory that its user has opened to others. The commands report the mode.
    @Test(arguments: [["lock"], ["lock", "--all"], ["agent", "--stop"]])
    func aDirectoryThatWasOpenedIsNotPassedOver(_ words: [String]) throws {
        defer { removeRuntime() }
        try #require(chmod(person.place, 0o755) == 0)
        let refused = try person.run(words, with: ["XDG_RUNTIME_DIR=\(runtime)"])
        #expect(refused.status == 8 && refused.error.contains("0700"), "\(refused)")
        try #require(chmod(person.place, 0o700) == 0)
        #expect(try person.run("retrieve", "k").output == "a")
    }

    @Test func aLinkToTheDirectoryOfTheLoginIsThat() throws {
        defer { removeRuntime() }
        let link = "\(person.home)/link"
        try #require(symlink(runtime, link) == 0)
        // The agent runs in `/tmp`.
        let locked = try person.run(["lock"], with: ["XDG_RUNTIME_DIR=\(link)"])
        #expect(locked.status == 0 && locked.error.isEmpty, "\(locked.error)")
        #expect(try !person.run("status", "--json").output.contains(#""state":"unlocked""#))
    }

    @Test func whatWasNotReachedIsSaid() throws {
        defer { removeRuntime() }
        #expect(try person.run("agent", "--stop").error.isEmpty)
        for words in [["lock"], ["lock", "--all"]] {
            let outcome = try person.run(words)
            #expect(
                outcome.status == 0
                    && outcome.error == "vaultctl: note: no agent was found, so nothing was locked\n",
                "\(outcome.error)")
        }
        let stopped = try person.run("agent", "--stop")
        #expect(stopped.status == 0 && stopped.error.contains("no agent was found"), "\(stopped.error)")
    }

    /// A user has 128 watches of the system's, and other programs want them too.
    @Test func oneWithoutAWatchNoticesAsWellThatItCannotBeReached() throws {
        removeRuntime()
        #expect(try person.run("agent", "--stop").status == 0)
        let script = """
            import ctypes, sys
            libc = ctypes.CDLL(None)
            while libc.inotify_init1(0) >= 0: pass
            print("full", flush=True)
            sys.stdin.read()
            """
        let (input, output) = (try FileDescriptor.pipe(), try FileDescriptor.pipe())
        for end in [input.readEnd, input.writeEnd, output.readEnd, output.writeEnd] {
            try #require(fcntl(end.rawValue, F_SETFD, FD_CLOEXEC) == 0)
        }
        let hog = try Program.start(
            "/usr/bin/setpriv",
            [
                "--reuid=\(person.user)", "--regid=\(person.user)", "--clear-groups", "--",
                "/usr/bin/python3", "-c",
                script,
            ],
            inheriting: [(input.readEnd.rawValue, 0), (output.writeEnd.rawValue, 1)])
        try output.writeEnd.close()
        defer {
            try? input.writeEnd.close()
            _ = Program.wait(for: hog)
        }
        var byte: UInt8 = 0
        try #require(read(output.readEnd.rawValue, &byte, 1) == 1)
        #expect(try person.run("unlock").status == 0)
        try #require(unlink("\(person.place)/agent.sock") == 0)
        // The command succeeds when the agent has ended.
        let locked = try person.run("lock", "--timeout", "300")
        #expect(locked.status == 0, "\(locked.error)")
        #expect(try person.run("status", "--json").output.contains(#""agent":false"#))
    }

    @Test func eachIsLocked() throws {
        defer { removeRuntime() }
        // A second agent, in a directory that only the variable names: other commands do not look there.
        let named = ["XDG_RUNTIME_DIR=\(person.home)"]
        #expect(try person.run(["unlock"], with: named).status == 0)
        #expect(try person.run(["lock", "--all"]).status == 0)
        #expect(
            try person.run(["status", "--json"], with: named).output.contains(#""state":"unlocked""#))
        #expect(try !person.run("status", "--json").output.contains(#""state":"unlocked""#))
        #expect(try person.run(["agent", "--stop"], with: named).status == 0)
    }
}

/// Another user of this machine, with a vault and with programs that everybody may run.
final class Person: Sendable {
    static let nobody: UInt32 = 65_534

    let user: UInt32
    let home: String
    private let programs: String
    var place: String { "/tmp/tokenvault-\(user)" }

    init() throws {
        var number: UInt32
        repeat { number = .random(in: 50_000..<60_000) } while access("/tmp/tokenvault-\(number)", F_OK) == 0
        user = number
        var template = Array("/tmp/vaultctl-person-XXXXXX".utf8CString)
        let path = try #require(mkdtemp(&template).map { String(cString: $0) })
        programs = "\(path)/bin"
        home = "\(path)/home"
        try #require(chmod(path, 0o755) == 0 && mkdir(programs, 0o755) == 0 && mkdir(home, 0o700) == 0)
        try #require(chmod(programs, 0o755) == 0 && chown(home, user, user) == 0)
        for name in ["vaultctl", "vaultctl-agent"] {
            let copied = try Program.run("/bin/cp", [Program.beside(name), "\(programs)/\(name)"])
            try #require(copied == 0 && chmod("\(programs)/\(name)", 0o755) == 0)
        }
        let made = try run("init")
        try #require(made.status == 0, "\(made.error)")
    }

    deinit {
        _ = try? run("agent", "--stop")
        _ = try? Program.run(
            "/bin/rm", ["-rf", FilePath(home).removingLastComponent().string, place])
    }

    /// Runs `vaultctl` as this user.
    func run(_ arguments: String..., input: String = "") throws -> Program.Outcome {
        try run(arguments, input: input)
    }

    /// The same, of a list of words.
    func run(_ arguments: [String], input: String = "", with extra: [String] = []) throws -> Program.Outcome {
        try Program.capture(
            "/usr/bin/setpriv",
            ["--reuid=\(user)", "--regid=\(user)", "--clear-groups", "--", "\(programs)/vaultctl"]
                + arguments,
            environment: extra + [
                "HOME=\(home)", "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/no/bus",
                "VAULTCTL_KEY_FILE=\(home)/vault.key",
            ], input: input)
    }
}
