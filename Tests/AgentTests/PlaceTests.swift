import Foundation
import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVault
import VaultAgent
import VaultAgentServer

@testable import TokenVaultPlatform

@Suite(.tags(.programs), .from(.usual)) struct PlaceTests {
    let home: TestHome

    init() throws { home = try TestHome() }

    private func expectRefusal(
        _ code: TokenStorageError.Code, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(sourceLocation: sourceLocation) {
            _ = try AgentListening(at: home.place)
        } throws: {
            ($0 as? TokenStorageError)?.code == code
        }
    }

    private func makeDirectory() throws { try PosixDirectory.makeAll(home.place.directory) }

    @Test func theDirectoryAndTheSocketAreOurs() throws {
        let listening = try AgentListening(at: home.place)
        var information = stat()
        #expect(lstat(home.place.directory.string, &information) == 0 && information.st_mode & 0o777 == 0o700)
        #expect(lstat(home.place.socket.string, &information) == 0 && information.st_mode & 0o777 == 0o600)
        #expect(listening.remove())
        #expect(lstat(home.place.socket.string, &information) != 0)
    }

    @Test func thereIsOneAgent() throws {
        let first = try AgentListening(at: home.place)
        expectRefusal(.conflict)
        _ = consume first
        _ = try AgentListening(at: home.place)
    }

    /// A program that is started meanwhile has what this process has open, until it runs.
    @Test func aDirectoryIsFreeWhateverStartsMeanwhile() throws {
        var first: AgentListening? = try AgentListening(at: home.place)
        let directory = home.place.directory.string
        let copies = (try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd"))
            .filter {
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)"))
                    == directory
            }
            .compactMap { CInt($0) }.map { fcntl($0, F_DUPFD_CLOEXEC, 0) }
        defer { for copy in copies { close(copy) } }
        try #require(copies.count == 1)
        expectRefusal(.conflict)
        first = nil
        _ = try AgentListening(at: home.place)
        #expect(first == nil)
    }

    @Test func aProcessThatRunsKeepsOthersOut() throws {
        let agent = try TestAgent(in: home)
        #expect(throws: AgentProcess.Ended(status: 9)) { try AgentProcess(at: home.place) }
        #expect(try agent.vault().isHeld() == false)
    }

    @Test func aSocketThatNobodyHasIsReplaced() throws {
        let first = try TestAgent(in: home)
        first.process.end(SIGKILL)
        #expect(try SmallFile.exists(home.place.socket))
        #expect(throws: TokenStorageError.self) { try first.vault().status() }
        let second = try TestAgent(in: home)
        #expect(try second.vault().status() == nil)
    }

    @Test func aSocketThatWasPassedOnIsTakenAndLeft() throws {
        let listener = try ManagedSocket.listen(at: home.place.socket)
        let script = "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" --directory \"$1\""
        let arguments = ["-c", script, Program.beside("vaultctl-agent"), home.place.directory.string]
        let agent = try Program.start("/bin/sh", arguments, inheriting: [(listener.descriptor, 3)])
        // A client may connect before the agent runs, and waits for its answer.
        let vault = BlockingAgentVault(at: home.vault, agent: home.place)
        #expect(try vault.status() == nil)
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        try vault.storage(service: "s").store(token: "not a real token", for: "k")
        kill(agent, SIGTERM)
        #expect(Program.wait(for: agent) == 0)
        // The socket stays for the next agent that the manager starts.
        #expect(try SmallFile.exists(home.place.socket))
        let wrong = try Program.start(
            "/bin/sh", arguments, inheriting: [(try #require(Optional(open("/dev/null", O_RDONLY))), 3)])
        #expect(Program.wait(for: wrong) == 8)
    }

    /// What is descriptor 3 of a process that was started by hand.
    enum Third: CaseIterable {
        case listener, elsewhere, nothing, file, pair, datagram, network
    }

    /// Starts the agent with what systemd passes, or with something else. Returns its process once it serves,
    /// or how it ended.
    private func start(_ process: String, _ count: String, _ third: Third) throws -> Result<
        pid_t, AgentProcess.Ended
    > {
        let ready = try FileDescriptor.pipe()
        for end in [ready.readEnd, ready.writeEnd] {
            try #require(fcntl(end.rawValue, F_SETFD, FD_CLOEXEC) == 0)
        }
        defer { try? ready.readEnd.close() }
        var passed: [(Int32, Int32)] = [(ready.writeEnd.rawValue, 9)]
        var listener: SocketListener?
        var opened: Int32 = -1
        let stream = CInt(SOCK_STREAM.rawValue)
        switch third {
        case .listener:
            let made = try ManagedSocket.listen(at: home.place.socket)
            listener = made
            passed.append((made.descriptor, 3))
        case .elsewhere:
            let made = try ManagedSocket.listen(at: home.path.appending("elsewhere.sock"))
            listener = made
            passed.append((made.descriptor, 3))
        case .nothing: break
        case .file: opened = open("/dev/null", O_RDONLY | O_CLOEXEC)
        case .pair: opened = socket(AF_UNIX, stream, 0)
        case .datagram: opened = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0)
        case .network:
            opened = socket(AF_INET, stream, 0)
            try #require(listen(opened, 1) == 0)
        }
        defer { if opened >= 0 { close(opened) } }
        if opened >= 0 { passed.append((opened, 3)) }
        let script =
            "LISTEN_PID=\(process) LISTEN_FDS=$2 DBUS_SYSTEM_BUS_ADDRESS=unix:path=/no/bus exec \"$0\" --directory \"$1\" "
            + "--ready-fd 9 \(third == .nothing ? "3<&-" : "")"
        let agent = try Program.start(
            "/bin/bash",
            ["-c", script, Program.beside("vaultctl-agent"), home.place.directory.string, count],
            inheriting: passed)
        try ready.writeEnd.close()
        var byte: UInt8 = 0
        if read(ready.readEnd.rawValue, &byte, 1) == 1 { return .success(agent) }
        withExtendedLifetime(listener) {}
        return .failure(AgentProcess.Ended(status: Program.wait(for: agent)))
    }

    private func expectService() throws {
        let vault = BlockingAgentVault(at: home.vault, agent: home.place, timeout: .seconds(300))
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        try vault.storage(service: "s").store(token: "not a real token", for: "k")
        #expect(try vault.storage(service: "s").retrieve(for: "k") == "not a real token")
    }

    @Test(arguments: [
        ("1", "1"), ("$$x", "1"), ("", "1"), ("-1", "1"), ("0", "1"), ("$$", "0"), ("$$", "-1"), ("$$", ""),
        ("$$", "1x"), ("$$", " 1"), ("$$", "99999999999999999999"),
    ])
    func whatNoManagerSaysIsNotBelieved(process: String, count: String) throws {
        // Descriptor 3 is not a socket: an agent that took it for one would not serve.
        let agent = try start(process, count, .file).get()
        try expectService()
        kill(agent, SIGTERM)
        #expect(Program.wait(for: agent) == 0)
        #expect(try SmallFile.exists(home.place.socket) == false)
    }

    @Test(arguments: ["1", "3", "2147483648"], Third.allCases)
    func onlyAListeningSocketOfThisMachineIsTaken(count: String, third: Third) throws {
        switch try start("$$", count, third) {
        case .success(let agent):
            #expect(third == .listener)
            try expectService()
            kill(agent, SIGTERM)
            #expect(Program.wait(for: agent) == 0)
        case .failure(let ended):
            #expect(third != .listener)
            #expect(ended.status == 8)
        }
    }

    @Test func anotherThingInTheSocketsPlaceIsRefused() throws {
        try makeDirectory()
        let socket = home.place.socket.string
        try SmallFile.create(home.place.socket, [1])
        expectRefusal(.alreadyExists)
        #expect(unlink(socket) == 0)
        #expect(symlink("/nowhere", socket) == 0)
        expectRefusal(.alreadyExists)
        #expect(unlink(socket) == 0)
        #expect(mkdir(socket, 0o700) == 0)
        expectRefusal(.alreadyExists)
        #expect(rmdir(socket) == 0)
        _ = try AgentListening(at: home.place)
    }

    @Test func aDirectoryThatOthersMayLookIntoIsRefused() throws {
        try makeDirectory()
        chmod(home.place.directory.string, 0o750)
        expectRefusal(.insecurePermissions)
        let client = BlockingAgentVault(at: home.vault, agent: home.place)
        #expect(throws: TokenStorageError.self) { try client.isHeld() }
        chmod(home.place.directory.string, 0o700)
        _ = try AgentListening(at: home.place)
    }

    @Test func aDirectoryBehindALinkIsRefused() throws {
        let elsewhere = home.path.appending("elsewhere")
        try PosixDirectory.makeAll(elsewhere)
        #expect(symlink(elsewhere.string, home.place.directory.string) == 0)
        expectRefusal(.insecurePermissions)
        #expect(try PosixDirectory(elsewhere).names().isEmpty)
    }

    @Test func aLongPathIsNoObstacle() throws {
        let long = home.path.appending(String(repeating: "x", count: 200))
        let agent = try AgentProcess(at: AgentEndpoint(directory: long))
        defer { agent.end(SIGTERM) }
        let vault = BlockingAgentVault(at: home.vault, agent: AgentEndpoint(directory: long))
        #expect(try vault.status() == nil)
    }

    @Test func anotherUsersAgentIsNotTrusted() throws {
        // Only root can give the directory to another user.
        guard geteuid() == 0 else { return }
        try makeDirectory()
        chown(home.place.directory.string, 65_534, 65_534)
        expectRefusal(.insecurePermissions)
        #expect(throws: TokenStorageError.self) {
            try BlockingAgentVault(at: home.vault, agent: home.place).isHeld()
        }
    }

    @Test func withoutAnAgentNothingIsHeldAndCallsSayWhy() throws {
        let vault = BlockingAgentVault(at: home.vault, agent: home.place)
        #expect(try vault.isHeld() == false)
        #expect(try vault.lock() == false)
        let error = #expect(throws: TokenStorageError.self) {
            try vault.storage(service: "s").retrieve(for: "k")
        }
        #expect(error?.code == .unavailable)
    }
}
