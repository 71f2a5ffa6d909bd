import Glibc
import Measuring
import TokenVault

/// Measures the Secret Service backend against a C program that calls libsecret, on one keyring, in one run
/// and in turn: `keyring-benchmark ADDRESS C-PROGRAM ITEMS`. Prints the figures and their ratios; ends with
/// 1 when a target is missed.
@main
struct KeyringBenchmark {
    static func main() throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, let items = Int(arguments[3]), items >= 2 else {
            print("usage: keyring-benchmark ADDRESS C-PROGRAM ITEMS")
            exit(64)
        }
        let configuration = SecretServiceConfiguration(bus: .address(arguments[1]), prompting: .never)
        let storage = SecretService(configuration: configuration).storage(service: "benchmark").blocking
        let peer = try Peer(arguments[2])
        let value = String(repeating: "a", count: 1_024)
        // Half of the items are ours and half are the peer's: both write the same keyring.
        for index in 0..<items / 2 {
            try storage.store(token: value, for: "item-\(index)")
            _ = peer.time("store", "item-\(index)")
        }
        var (lookups, peerLookups) = (Measurement(), Measurement())
        var (stores, peerStores) = (Measurement(), Measurement())
        for round in 0..<400 {
            let key = "item-\(round * 7 % (items / 2))"
            try lookups.time {
                guard try storage.retrieve(for: key) == value else { exit(1) }
            }
            peerLookups.add(peer.time("lookup", key))
            if round % 2 == 0 {
                try stores.time { try storage.store(token: value, for: key) }
                peerStores.add(peer.time("store", key))
            }
        }
        print("keyring of \(items) items of 1 KiB, in turn with C calling libsecret")
        var missed = 0
        for (name, ours, theirs, limit) in [
            ("lookup", lookups, peerLookups, 1.0), ("store", stores, peerStores, 1.1),
        ] {
            print(
                "  \(name): p50 \(rounded(ours.p50)) µs, p99 \(rounded(ours.percentile(0.99))) µs; "
                    + "C p50 \(rounded(theirs.p50)) µs, p99 \(rounded(theirs.percentile(0.99))) µs")
            let ratio = ours.p50 / theirs.p50
            if ratio > limit { missed += 1 }
            print(
                "  \(ratio <= limit ? "met   " : "MISSED")  \(name) ratio: \(rounded(ratio)) × (at most \(limit))"
            )
        }
        exit(missed == 0 ? 0 : 1)
    }
}

/// The C program: it times itself, so that the pipe to it costs it nothing.
final class Peer {
    private let commands: UnsafeMutablePointer<FILE>
    private let answers: UnsafeMutablePointer<FILE>

    init(_ program: String) throws {
        var (input, output): ([CInt], [CInt]) = ([0, 0], [0, 0])
        guard pipe(&input) == 0, pipe(&output) == 0 else { exit(1) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, input[0], 0)
        posix_spawn_file_actions_adddup2(&actions, output[1], 1)
        posix_spawn_file_actions_addclose(&actions, input[1])
        var words: [UnsafeMutablePointer<CChar>?] = [strdup(program), nil]
        var process = pid_t()
        guard posix_spawn(&process, program, &actions, nil, &words, environ) == 0,
            let commands = fdopen(input[1], "w"), let answers = fdopen(output[0], "r")
        else { exit(1) }
        close(input[0])
        close(output[1])
        self.commands = commands
        self.answers = answers
    }

    /// How long `operation` took it, in microseconds.
    func time(_ operation: String, _ key: String) -> Double {
        fputs("\(operation) \(key)\n", commands)
        fflush(commands)
        var line = [CChar](repeating: 0, count: 64)
        guard fgets(&line, 64, answers) != nil else {
            print("the C program failed")
            exit(1)
        }
        return (strtod(line, nil)) / 1_000
    }
}
