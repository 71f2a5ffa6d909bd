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
                if round < 10 { run(command: command) }
                // The first rounds warm the caches.
                if round >= 10 { times[index].time { run(command: command) } }
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
}
