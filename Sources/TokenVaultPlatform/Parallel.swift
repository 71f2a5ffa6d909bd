internal import Synchronization

/// Work that is split among the processors.
package enum Parallel {
    /// What `body` gives for parts of `0..<count`, in their order. Each part has at least `least` elements, unless
    /// there is only one, and a thread of its own; the caller's takes the last. Throws the error of the first part that
    /// has one.
    package static func map<Value: Sendable, Failure: Error>(
        _ count: Int, least: Int, _ body: @escaping @Sendable (Range<Int>) throws(Failure) -> Value
    ) throws(Failure) -> [Value] {
        let parts = max(1, min(ProcessFacts.processors, count / max(1, least)))
        guard parts > 1 else { return [try body(0..<count)] }
        let outcomes = Monitor([Result<Value, Failure>?](repeating: nil, count: parts))
        let run: @Sendable (Int) -> Void = { part in
            let range = count * part / parts..<count * (part + 1) / parts
            let outcome = Result { () throws(Failure) in try body(range) }
            outcomes.announce { $0[part] = outcome }
        }
        // Threads that are not to be had: their jobs run here.
        let threads = (1..<parts).map { _ in WorkerThread(name: "vault-part") }
        for (index, thread) in threads.enumerated() { thread.run { run(index) } }
        run(parts - 1)
        outcomes.wait { $0.contains { $0 == nil } ? nil : () }
        var values: [Value] = []
        values.reserveCapacity(parts)
        for outcome in outcomes.withLock({ $0 }) {
            if let outcome { values.append(try outcome.get()) }
        }
        return values
    }
}
