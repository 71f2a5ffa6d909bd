import Glibc
import Synchronization
import SystemPackage
import TestLanes
import Testing
import TokenVault
import VaultAgent

@testable import TokenVaultPlatform

/// The agent as a service manager runs it: the test plays systemd.
@Suite(.tags(.programs), .from(.usual)) struct ServiceTests {
    let home: TestHome

    init() throws { home = try TestHome() }

    /// The socket that services tell their state at.
    private final class Manager {
        let address: String
        private let descriptor: Int32

        init(at path: String, isAbstract: Bool) throws {
            address = isAbstract ? "@" + path : path
            descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0)
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            var place = sockaddr_un()
            place.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &place.sun_path) {
                $0.copyBytes(from: (isAbstract ? "\0" + path : path).utf8)
            }
            let length = MemoryLayout<sa_family_t>.size + address.utf8.count + (isAbstract ? 0 : 1)
            let bound = withUnsafePointer(to: &place) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(length))
                }
            }
            try #require(bound == 0)
            var patience = timeval(tv_sec: 300, tv_usec: 0)
            setsockopt(
                descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        }

        deinit { close(descriptor) }

        /// What a service says next.
        func hear() -> String {
            var buffer = [UInt8](repeating: 0, count: 4_096)
            let count = recv(descriptor, &buffer, buffer.count, 0)
            return String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self)
        }
    }

    /// Starts the agent with a listening socket as descriptor 3.
    private func start(_ listener: SocketListener, telling address: String) throws -> pid_t {
        let script =
            "LISTEN_PID=$$ LISTEN_FDS=1 NOTIFY_SOCKET=$2 DBUS_SYSTEM_BUS_ADDRESS=unix:path=/no/bus exec \"$0\" "
            + "--directory \"$1\""
        return try Program.start(
            "/bin/sh",
            ["-c", script, Program.beside("vaultctl-agent"), home.place.directory.string, address],
            inheriting: [(listener.descriptor, 3)])
    }

    @Test(arguments: [false, true])
    func itSaysWhenItServesAndWhenItEnds(isAbstract: Bool) throws {
        let manager = try Manager(at: home.path.appending("notify").string, isAbstract: isAbstract)
        let listener = try ManagedSocket.listen(at: home.place.socket)
        let first = try start(listener, telling: manager.address)
        #expect(manager.hear() == "READY=1")
        let vault = BlockingAgentVault(at: home.vault, agent: home.place, timeout: .seconds(300))
        try vault.unlock(with: TestHome.keyFile, stateDirectory: home.state)
        // A thread writes without a pause.
        let written = Monitor(0)
        let end = Monitor<TokenStorageError.Code?>(nil)
        let writer = WorkerThread(name: "writer")
        writer.run {
            do throws(TokenStorageError) {
                while true {
                    let number = written.withLock { $0 }
                    try vault.storage(service: "s").store(token: "not a real token", for: "k\(number)")
                    written.announce { $0 += 1 }
                }
            } catch {
                end.announce { $0 = error.code }
            }
        }
        #expect(written.wait(atMost: .seconds(300)) { $0 >= 10 ? () : nil } != nil)
        kill(first, SIGTERM)
        #expect(manager.hear() == "STOPPING=1")
        #expect(Program.wait(for: first) == 0)
        // The next agent serves the client that waits at the socket, and holds no vault.
        let second = try start(listener, telling: manager.address)
        #expect(manager.hear() == "READY=1")
        #expect(end.wait(atMost: .seconds(300)) { $0 } == .locked)
        #expect(try vault.isHeld() == false)
        // Every request that began got an answer, and exactly the acknowledged items are stored.
        let keys = try home.open().storage(service: "s").list().items.count
        #expect(keys == written.withLock { $0 })
        kill(second, SIGINT)
        #expect(Program.wait(for: second) == 0)
        #expect(manager.hear() == "STOPPING=1")
    }

    @Test(arguments: ["nothing", "/no/such/socket", String(repeating: "/long", count: 40)])
    func aManagerThatCannotBeToldIsNoReasonToEnd(address: String) throws {
        let agent = try AgentProcess(at: home.place, environment: ["NOTIFY_SOCKET=\(address)"])
        #expect(try AgentControl.isRunning(at: home.place))
        agent.end(SIGTERM)
    }
}
