import BareCryptography
import Glibc
import Measuring
import SystemPackage
import TokenVault
import VaultAgent

/// Measures storing and looking up 1 KiB against others that keep secrets, all in turn:
///
///     peers-benchmark DIRECTORY AGENT-PLACE BUS-ADDRESS C-LOOP PYTHON PYTHON-LOOP ITEMS…
///
/// as `Scripts/bench-peers.sh` has prepared it. ITEMS are how many there are, from few to many.
@main
struct PeersBenchmark {
    static func main() throws {
        if Echo.servesHere() { return }
        let arguments = CommandLine.arguments
        guard arguments.count >= 8, case let counts = arguments[7...].compactMap({ Int($0) }),
            counts.count == arguments.count - 7
        else {
            print("usage: peers-benchmark DIRECTORY AGENT-PLACE BUS-ADDRESS C-LOOP PYTHON PYTHON-LOOP ITEMS…")
            exit(64)
        }
        let benchmark = try PeersBenchmark(
            directory: FilePath(arguments[1]), agent: AgentEndpoint(directory: FilePath(arguments[2])),
            bus: arguments[3], loop: arguments[4], python: [arguments[5], arguments[6]])
        for count in counts { try benchmark.run(items: count) }
    }

    private let file, agent, secretService: Participant
    private let libsecret, libsecretFile, pythonSecretService, pythonCryptfile: Participant
    private let limits, echo: Participant
    /// In the order in which they come.
    private var all: [Participant] {
        [
            limits, file, echo, agent, libsecretFile, secretService, libsecret, pythonSecretService,
            pythonCryptfile,
        ]
    }

    private init(directory: FilePath, agent place: AgentEndpoint, bus: String, loop: String, python: [String])
        throws
    {
        let key = UnlockMethod.keyFile(Secret(utf8: "a benchmark's key, which is no secret at all"))
        let state = directory.appending("state")
        func vault(_ name: String) throws -> BlockingFileVault {
            try .create(
                at: directory.appending(name), unlockMethod: key,
                configuration: FileVaultConfiguration(stateDirectory: state))
        }
        file = Participant("file", try vault("file.vault").storage(service: "benchmark"))
        let held = try vault("agent.vault")
        held.close()
        let agentVault = BlockingAgentVault(at: held.path, agent: place)
        try agentVault.unlock(with: key, stateDirectory: state, lockingAfter: nil)
        agent = Participant("agent", agentVault.storage(service: "benchmark"))
        // One half of the keyring's items is ours, the other half is the C program's. Each program writes all
        // of them.
        secretService = Participant(
            "Secret Service",
            SecretService(configuration: SecretServiceConfiguration(bus: .address(bus), prompting: .never))
                .storage(service: "benchmark").blocking
        ) { $0 / 2 }
        libsecret = Participant("libsecret in C, gnome-keyring", try Loop([loop])) { $0 / 2 }
        libsecretFile = Participant(
            "libsecret in C, its file backend",
            try Loop([
                "env", "SECRET_BACKEND=file",
                "SECRET_FILE_TEST_PATH=\(directory.appending("libsecret.keyring"))",
                "SECRET_FILE_TEST_PASSWORD=not-a-real-password", loop,
            ]))
        pythonSecretService = Participant(
            "python keyring, gnome-keyring", try Loop(python + ["secret-service"]), share: { _ in 5 },
            interval: 8)
        pythonCryptfile = Participant(
            "keyrings.cryptfile with 5 items",
            try Loop(python + ["cryptfile", directory.appending("cryptfile.cfg").string]),
            share: { _ in 5 }, interval: 10)
        let bare = try BareFile(at: directory.appending("bare").string, bytesPerWrite: 1_448, writes: 1_000)
        guard let records = bare_records_create(directory.appending("records").string, 1_000, 1_024) else {
            throw Errno.ioError
        }
        var turn = 0
        limits = Participant(
            "the bare calls", store: { try bare.write() },
            lookup: {
                turn += 1
                guard bare_records_open(records, turn * 7 % 1_000) == 0 else { throw Errno.ioError }
            })
        let socket = try Echo(.sleeping)
        echo = Participant(
            "an echo over a Unix socket", store: {}, lookup: { socket.exchange(request: 150, answer: 1_024) })
    }

    private func run(items: Int) throws {
        Report.say("filling with \(items) items of 1 KiB")
        for participant in all { try participant.fill(to: items) }
        for round in 0..<(items > 1_000 ? 60 : 300) {
            for participant in round % 2 == 0 ? all : all.reversed() { try participant.takePart(in: round) }
        }
        Report.say("store and look up 1 KiB among \(items), in turn")
        func compare(
            _ other: Participant, with ours: Participant, store: Limit?, lookup: Limit?, inverse: Bool = true
        ) {
            let (name, othersName) = ("TokenVault, \(ours.name)", other.name)
            for (what, times, others, limit) in [
                ("store", ours.stores, other.stores, store), ("lookup", ours.lookups, other.lookups, lookup),
            ] where what == "lookup" || other !== echo {
                let ratio = Spread(times, per: others)
                Report.judge(
                    inverse
                        ? "\(what) among \(items): \(othersName) / \(name)"
                        : "\(what) among \(items): \(name) / \(othersName)",
                    inverse ? ratio.inverse : ratio, limit, of: [(name, times), (othersName, others)])
            }
        }
        compare(limits, with: file, store: nil, lookup: nil, inverse: false)
        compare(echo, with: agent, store: nil, lookup: nil, inverse: false)
        compare(
            libsecret, with: secretService, store: .atMost(1.05), lookup: .atMost(0.9), inverse: false)
        compare(
            libsecret, with: file, store: items >= 2_000 ? .atLeast(100) : nil, lookup: .atLeast(200))
        for peer in [libsecretFile, pythonSecretService, pythonCryptfile] {
            compare(peer, with: file, store: nil, lookup: nil)
        }
        for peer in [libsecret, libsecretFile] { compare(peer, with: agent, store: nil, lookup: nil) }
        compare(pythonSecretService, with: secretService, store: nil, lookup: nil)
    }
}
