import Glibc
import Measuring

/// Times whole commands in turn, the first one against each of the others:
///
///     command-benchmark ROUNDS INPUT WHAT COMMAND… [-- NAME LIMIT COMMAND…]…
///
/// Every command reads the file INPUT. LIMIT is what the first may take, as a share of what the other takes, or `-`.
@main
struct CommandBenchmark {
    static func main() {
        let groups = CommandLine.arguments.dropFirst().split(separator: "--").map(Array.init)
        guard groups.count >= 2, groups[0].count >= 4, let rounds = Int(groups[0][0]),
            groups.dropFirst().allSatisfy({ $0.count >= 3 })
        else {
            print("usage: command-benchmark ROUNDS INPUT WHAT COMMAND… [-- NAME LIMIT COMMAND…]…")
            exit(64)
        }
        let (input, what) = (groups[0][1], groups[0][2])
        let commands = [Array(groups[0][3...])] + groups.dropFirst().map { Array($0[2...]) }
        var times = commands.map { _ in Measurement() }
        let warming = max(1, rounds / 20)
        for round in 0..<rounds + warming {
            for index in InterleavedMeasurement.order(of: commands.count, in: round) {
                // The first rounds warm the caches.
                if round < warming {
                    run(command: commands[index], input: input)
                } else {
                    times[index].time { run(command: commands[index], input: input) }
                }
            }
        }
        Report.say("\(what) and others, whole processes, in turn")
        for (peer, time) in zip(groups.dropFirst(), times.dropFirst()) {
            Report.judge(
                "\(what) / \(peer[0])", Spread(times[0], per: time), Double(peer[1]).map { .atMost($0) },
                of: [(what, times[0]), (peer[0], time)])
        }
    }
}
