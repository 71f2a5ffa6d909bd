import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVaultPlatform
import VaultAgent

/// An `XDG_RUNTIME_DIR` that this user cannot use: it is another user's, it does not exist, or its agent
/// never answers.
@Suite(.tags(.programs), .from(.usual)) struct ClosedPlaceTests {
    @Test(.enabled(if: geteuid() == 0, "only root can act as another user"))
    func anothersDirectoryIsToldAtOnce() throws {
        let person = try Person()
        let runtime = FilePath(person.home).removingLastComponent().appending("another").string
        try #require(mkdir(runtime, 0o700) == 0 && chown(runtime, Person.nobody, Person.nobody) == 0)
        let start = ContinuousClock.now
        for words in [["list"], ["status"], ["lock"], ["lock", "--all"], ["unlock"], ["agent", "--stop"]] {
            let refused = try person.run(
                words + ["--timeout", "280"], with: ["XDG_RUNTIME_DIR=\(runtime)"])
            #expect(refused.status == 8, "\(words): \(refused.error)")
            #expect(
                refused.error
                    == "vaultctl: the agent's directory \(runtime)/tokenvault cannot be used: XDG_RUNTIME_DIR is "
                    + "another user's or cannot be entered; unset it\n")
        }
        #expect(start.duration(to: .now) < .seconds(250), "the client tried again and again")
        #expect(try person.run(["list", "--no-agent"], with: ["XDG_RUNTIME_DIR=\(runtime)"]).status == 0)
        let agent = try person.run(["agent"], with: ["XDG_RUNTIME_DIR=\(runtime)"])
        #expect(agent.status == 8 && agent.error.contains("\(runtime)/tokenvault"), "\(agent.error)")
        #expect(agent.error.contains("Permission denied") && !agent.error.contains("vaultctl unlock"))
    }

    @Test func aDirectoryThatIsNotThereIsNamedAndNotMade() throws {
        let home = try CommandHome()
        let runtime = "\(home.path)/none"
        let named = ["XDG_RUNTIME_DIR=\(runtime)"]
        for words in [["unlock", "--key-file", home.keyFile], ["agent"]] {
            let refused = try home.run(words, with: named)
            #expect(refused.status == 8, "\(refused.error)")
            for part in ["\(runtime)/tokenvault", "XDG_RUNTIME_DIR", "No such file or directory"] {
                #expect(refused.error.contains(part), "\(words): \(refused.error)")
            }
            #expect(!refused.error.contains("vaultctl unlock") && !refused.error.contains("to see why"))
        }
        #expect(access(runtime, F_OK) != 0)
        // These commands need no agent.
        #expect(try home.run(["list", "--key-file", home.keyFile], with: named).status == 0)
        #expect(try home.run(["list"], with: named + ["VAULTCTL_KEY_FILE=\(home.keyFile)"]).status == 0)
    }

    @Test func unlockWaitsNoLongerThanTold() throws {
        let home = try CommandHome()
        let listener = try SocketDirectory(home.place.directory, creating: true).listen(
            at: AgentEndpoint.socketName)
        let start = ContinuousClock.now
        let unlock = try home.run("unlock", "--key-file", home.keyFile, "--timeout", "1")
        #expect(unlock.status == 10, "\(unlock.error)")
        #expect(start.duration(to: .now) < .seconds(25))
        withExtendedLifetime(listener) {}
    }
}
