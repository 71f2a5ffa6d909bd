import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent
import VaultAgentServer

/// What logind says, and what is locked for it.
@Suite(.tags(.programs), .from(.usual)) struct SessionTests {
    /// Counts locks.
    private final class Locks: Sendable {
        private let count = Monitor(0)
        /// Waits until there were that many, and gives how many there were.
        func reach(_ number: Int) -> Int {
            count.wait(atMost: .seconds(300)) { $0 >= number ? $0 : nil } ?? count.withLock { $0 }
        }
        func lock() { count.announce { $0 += 1 } }
    }

    private let locks = Locks()

    /// What watches `login` and has begun to, unless it is not `expected` to.
    private func watch(_ login: PrivateLogin) throws -> SessionWatch {
        let watch = try SessionWatch(login.configuration) { [locks] in locks.lock() }
        #expect(watch.wait(atMost: .seconds(300)) { $0 == nil })
        return watch
    }

    private func addSessions(to login: PrivateLogin) throws {
        try login.tell("add_session", "one", "\(ProcessFacts.user)")
        try login.tell("add_session", "two", "\(ProcessFacts.user)")
        try login.tell("add_session", "strange", "\(ProcessFacts.user + 1)")
    }

    @Test func itLocksWithItsOwnSessionAlone() throws {
        let login = try PrivateLogin(own: "one")
        try addSessions(to: login)
        let watch = try watch(login)
        try login.tell("lock", "two")
        try login.tell("lock", "strange")
        try login.tell("lock", "one")
        #expect(locks.reach(1) == 1)
        withExtendedLifetime(watch) {}
    }

    @Test func inNoSessionItLocksWithEveryOneOfTheUser() throws {
        let login = try PrivateLogin()
        try addSessions(to: login)
        let watch = try watch(login)
        try login.tell("lock", "strange")
        try login.tell("lock", "two")
        #expect(locks.reach(1) == 1)
        // Sessions that begin later count as well.
        try login.tell("add_session", "stranger", "\(ProcessFacts.user + 1)")
        try login.tell("add_session", "three", "\(ProcessFacts.user)")
        try login.tell("lock", "stranger")
        try login.tell("lock", "three")
        #expect(locks.reach(2) == 2)
        withExtendedLifetime(watch) {}
    }

    @Test func theEndOfItsSessionLocks() throws {
        let login = try PrivateLogin(own: "one")
        try addSessions(to: login)
        let watch = try watch(login)
        try login.tell("end_session", "two")
        try login.tell("end_session", "one")
        #expect(locks.reach(1) == 1)
        // From now on the agent locks with the user's other sessions.
        try login.tell("add_session", "three", "\(ProcessFacts.user)")
        try login.tell("lock", "three")
        #expect(locks.reach(2) == 2)
        withExtendedLifetime(watch) {}
    }

    @Test func sleepWaitsUntilEverythingIsLocked() throws {
        let login = try PrivateLogin()
        let held = Monitor<[String]>([])
        let watch = try SessionWatch(login.configuration) {
            // The agent still delays sleep while it locks.
            let count = (try? login.tell("inhibitors").first) ?? "?"
            held.announce { $0.append(count) }
        }
        #expect(watch.wait(atMost: .seconds(300)) { $0 == nil })
        #expect(try login.tell("await_inhibitors", "1") == ["sleep", "TokenVault", "locks vaults", "delay"])
        for round in 1...2 {
            try login.tell("sleep", "begins")
            #expect(held.wait(atMost: .seconds(300)) { $0.count == round ? $0 : nil }?.last == "1")
            try login.tell("await_inhibitors", "0")
            try login.tell("sleep", "ends")
            try login.tell("await_inhibitors", "1")
        }
        withExtendedLifetime(watch) {}
    }

    @Test func whatOthersSayInItsNameDoesNotCount() throws {
        let login = try PrivateLogin(own: "one")
        try addSessions(to: login)
        let watch = try watch(login)
        #expect(try login.tell("forge", "one") == ["1"])
        #expect(watch.obstacle == nil)
        // The agent takes signals in order: if it had accepted the forged signals, there would be more locks.
        try login.tell("lock", "one")
        #expect(locks.reach(1) == 1)
        #expect(try login.tell("inhibitors") == ["1"])
    }

    @Test func alogindThatComesAnewIsFollowed() throws {
        let login = try PrivateLogin(own: "one")
        try addSessions(to: login)
        let watch = try watch(login)
        try login.tell("stop_logind")
        #expect(watch.wait(atMost: .seconds(300)) { $0?.contains("logind does not run") == true })
        // In the new logind, the process has no session.
        try login.tell("start_logind")
        #expect(watch.wait(atMost: .seconds(300)) { $0 == nil })
        try login.tell("await_inhibitors", "1")
        try addSessions(to: login)
        try login.tell("lock", "strange")
        try login.tell("lock", "two")
        #expect(locks.reach(1) == 1)
    }

    /// Once is no reason to do without it for good.
    @Test func alogindThatDoesNotAnswerIsAskedAgain() throws {
        let login = try PrivateLogin(own: "one")
        try addSessions(to: login)
        var configuration = login.configuration
        configuration.timeout = .seconds(1)
        let obstacles = Monitor<[String?]>([])
        let watch = try SessionWatch(
            configuration, tell: { obstacle in obstacles.announce { $0.append(obstacle) } },
            lock: { [locks] in locks.lock() })
        #expect(watch.wait(atMost: .seconds(300)) { $0 == nil })
        try login.tell("come_anew_and_stall", "3")
        // The agent failed to reach logind while the name had no owner, then failed again, and then found it.
        #expect(
            obstacles.wait(atMost: .seconds(300)) { told in
                told.last == .some(nil) && told.count > 1 ? () : nil
            } != nil)
        try login.tell("await_inhibitors", "1")
        try login.tell("lock", "two")
        try login.tell("lock", "one")
        #expect(locks.reach(1) >= 1)
        withExtendedLifetime(watch) {}
    }

    @Test func aBusThatIsLostLocksAndIsFoundAgain() throws {
        let login = try PrivateLogin(own: "one")
        let watch = try watch(login)
        try login.tell("stop_bus")
        #expect(locks.reach(1) == 1)
        #expect(watch.wait(atMost: .seconds(300)) { $0 != nil })
        try login.tell("start_bus")
        try login.tell("start_logind", "one")
        #expect(watch.wait(atMost: .seconds(300)) { $0 == nil })
        try login.tell("await_inhibitors", "1")
        try addSessions(to: login)
        try login.tell("lock", "one")
        #expect(locks.reach(2) == 2)
    }

    @Test func aBusThatComesLaterIsFound() throws {
        let login = try PrivateLogin(nothing: true)
        let watch = try SessionWatch(login.configuration) { [locks] in locks.lock() }
        #expect(watch.wait(atMost: .seconds(300)) { $0 != nil })
        try login.tell("start_bus")
        #expect(watch.wait(atMost: .seconds(300)) { $0?.contains("logind") == true })
        try login.tell("start_logind")
        #expect(watch.wait(atMost: .seconds(300)) { $0 == nil })
        try login.tell("sleep", "begins")
        #expect(locks.reach(1) == 1)
    }

    @Test(arguments: [
        "org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.login1.OperationInProgress",
    ])
    func aSleepThatCannotBeDelayedIsTold(error: String) throws {
        let login = try PrivateLogin(own: "one")
        try addSessions(to: login)
        try login.tell("fail_inhibit", error)
        let watch = try SessionWatch(login.configuration) { [locks] in locks.lock() }
        watch.waitUntilKnown(atMost: .seconds(300))
        let isUnderWay = error.hasSuffix("OperationInProgress")
        #expect(isUnderWay ? watch.obstacle == nil : watch.obstacle?.contains("AccessDenied") == true)
        #expect(locks.reach(isUnderWay ? 1 : 0) == (isUnderWay ? 1 : 0))
        try login.tell("lock", "one")
        #expect(locks.reach(isUnderWay ? 2 : 1) == (isUnderWay ? 2 : 1))
    }

    // MARK: - The agent

    @Test func theAgentLocksBeforeSleepAndWithTheSession() throws {
        let login = try PrivateLogin(own: "one")
        try addSessions(to: login)
        let home = try CommandHome()
        let bus = ["DBUS_SYSTEM_BUS_ADDRESS=\(login.address)"]
        #expect(try home.run("unlock", "--key-file", home.keyFile, with: bus).status == 0)
        #expect(try home.run("store", "dark", input: "a").status == 0)
        #expect(try home.run("store", "open", "--policy", "after-first-unlock", input: "b").status == 0)
        #expect(try home.run("status").output.contains("session:     locks it, and so does sleep"))
        #expect(try home.run("status", "--json").output.contains(#""locksWithSession":true"#))
        try login.tell("sleep", "begins")
        try login.tell("await_inhibitors", "0")
        // From here on logind may let the machine sleep.
        #expect(try home.run("retrieve", "dark").status == 4)
        #expect(try home.run("retrieve", "open").output == "b")
        try login.tell("sleep", "ends")
        try login.tell("await_inhibitors", "1")
        #expect(try home.run("retrieve", "dark").status == 4)
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        #expect(try home.run("retrieve", "dark").output == "a")
        try login.tell("lock", "one")
        // No event shows that the agent has received the signal.
        let vault = BlockingAgentVault(
            at: FilePath(home.path).appending(".local/share/tokenvault/default.vault"), agent: home.place)
        var pause = BackOff()
        let deadline = Deadline(after: .seconds(300))
        while try vault.lockState() == .unlocked, pause.wait(until: deadline) {}
        #expect(try home.run("retrieve", "dark").status == 4)
        #expect(try home.run("retrieve", "open").output == "b")
    }

    @Test func withoutABusTheAgentRunsAndSaysSo() throws {
        let home = try CommandHome()
        #expect(try home.run("unlock", "--key-file", home.keyFile).status == 0)
        let status = try home.run("status").output
        #expect(status.contains("session:     does not lock it: ") && status.contains("no system bus"))
        #expect(try home.run("status", "--json").output.contains(#""locksWithSession":false"#))
    }

    @Test func withoutLibsecretTheAgentRunsAndSaysSo() throws {
        let home = try TestHome()
        let libraries = home.path.appending("lib")
        try PosixDirectory.makeAll(libraries)
        try SmallFile.create(libraries.appending("libsecret-1.so.0"), [])
        let process = try AgentProcess(at: home.place, environment: ["LD_LIBRARY_PATH=\(libraries)"])
        defer { process.end(SIGKILL) }
        let vault = BlockingAgentVault(at: home.vault, agent: home.place)
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        #expect(try vault.status()?.sessionObstacle?.contains("libsecret") == true)
    }
}
