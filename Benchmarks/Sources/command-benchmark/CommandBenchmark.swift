import Glibc
import Measuring

/// Times whole commands in turn: `command-benchmark ROUNDS LIMIT COMMAND… -- COMMAND…`. Prints each one's
/// median and their ratio; ends with 1 when the first takes more than LIMIT times the second.
@main
struct CommandBenchmark {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard arguments.count >= 5, let rounds = Int(arguments[0]), let limit = Double(arguments[1]),
            let separator = arguments.firstIndex(of: "--")
        else {
            print("usage: command-benchmark ROUNDS LIMIT COMMAND… -- COMMAND…")
            exit(64)
        }
        let commands = [Array(arguments[2..<separator]), Array(arguments[(separator + 1)...])]
        var times = [Measurement(), Measurement()]
        for round in 0..<rounds + 10 {
            for (index, command) in commands.enumerated() {
                if round < 10 { run(command) }
                // The first rounds warm the caches.
                if round >= 10 { times[index].time { run(command) } }
            }
        }
        for (command, time) in zip(commands, times) {
            print(
                "  \(command[0]): p50 \(rounded(time.p50 / 1_000)) ms, p99 \(rounded(time.percentile(0.99) / 1_000)) ms"
            )
        }
        let ratio = times[0].p50 / times[1].p50
        let isMet = ratio <= limit
        print("  \(isMet ? "met   " : "MISSED")  ratio: \(rounded(ratio)) × (at most \(limit))")
        exit(isMet ? 0 : 1)
    }

    /// Runs a command to its end with its output thrown away; a failing one ends the benchmark.
    static func run(_ command: [String]) {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        var words: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) }
        words.append(nil)
        defer { for word in words { free(word) } }
        var process = pid_t()
        var status: CInt = 0
        guard posix_spawnp(&process, command[0], &actions, nil, words, environ) == 0,
            waitpid(process, &status, 0) == process, status == 0
        else {
            print("\(command.joined(separator: " ")) failed")
            exit(1)
        }
    }
}
