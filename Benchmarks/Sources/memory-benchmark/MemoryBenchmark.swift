import Measuring
import Synchronization
import TokenVault

/// Measures a retrieve from memory against a look-up in a dictionary that a mutex guards, in turn.
@main
enum MemoryBenchmark {
    /// Calls that are timed together: one takes about as long as reading the clock does.
    private static let calls = 1_000
    private static let rounds = 1_000
    private static let items = 1_000

    static func main() throws { try run() }

    /// Not on the main actor, whose closures ask where they are each time.
    private nonisolated static func run() throws {
        let storage = InMemoryTokenStorage(service: "benchmark")
        let secret = Secret([UInt8](repeating: 0x61, count: 1_024))
        let names = (0..<items).map { "item-\($0)" }
        let keys = names.map { TokenKey($0) }
        for key in keys { _ = try storage.blocking.store(secret, for: key) }
        let bare = Mutex(Dictionary(uniqueKeysWithValues: keys.map { ($0, secret) }))
        let strings = Mutex(Dictionary(uniqueKeysWithValues: names.map { ($0, secret) }))

        var (retrieve, lookup, stringLookup) = (Measurement(), Measurement(), Measurement())
        var found = 0
        for round in 0..<rounds {
            for index in InterleavedMeasurement.order(of: 3, in: round) {
                let start = ContinuousClock.now
                switch index {
                case 0:
                    for call in 0..<calls {
                        found += bare.withLock { $0[keys[(round + call) % items]] }?.count ?? 0
                    }
                    lookup.add(start.microseconds / Double(calls))
                case 1:
                    for call in 0..<calls {
                        found += try storage.blocking.secret(for: keys[(round + call) % items])?.count ?? 0
                    }
                    retrieve.add(start.microseconds / Double(calls))
                default:
                    for call in 0..<calls {
                        found += strings.withLock { $0[names[(round + call) % items]] }?.count ?? 0
                    }
                    stringLookup.add(start.microseconds / Double(calls))
                }
            }
        }
        guard found == 3 * rounds * calls * 1_024 else { throw POSIXFailure(number: 5) }
        Report.say("retrieve from memory, and a dictionary guarded by a mutex, in turn")
        Report.judge(
            "memory: retrieve / Mutex<[TokenKey: Secret]>", Spread(retrieve, per: lookup), .atMost(2),
            of: [("retrieve", retrieve), ("Mutex<[TokenKey: Secret]>", lookup)])
        Report.judge(
            "memory: retrieve / Mutex<[String: Secret]>", Spread(retrieve, per: stringLookup), nil,
            of: [("Mutex<[String: Secret]>", stringLookup)])
    }
}
