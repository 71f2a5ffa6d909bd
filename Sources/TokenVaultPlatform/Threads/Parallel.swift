internal import Synchronization

/// Work that is split among the processors.
package enum Parallel {
    /// Returns the results of `body` for parts of `0..<count`, in their order. Each part has a thread of its
    /// own; the caller's thread runs the last. Each part has at least `least` elements, unless there is only
    /// one part. Throws the error of the first failed part.
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
        // Without a thread the job runs on the calling thread.
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

    /// Makes values of parts of `0..<count` on all processors, with about `size` elements each. Passes them
    /// to `take` on this thread in their order, while later ones are made. Throws the first error in that
    /// order, after all work has stopped.
    package static func pipeline<Value: Sendable, Failure: Error>(
        _ count: Int, each size: Int,
        _ make: @escaping @Sendable (Range<Int>) throws(Failure) -> Value,
        take: (Value) throws(Failure) -> Void
    ) throws(Failure) {
        let parts = max(1, count / max(1, size))
        guard parts > 1 else { return try take(try make(0..<count)) }
        let makers = min(ProcessFacts.processors, parts)
        let line = AssemblyLine<Value, Failure>(parts, ahead: 4 * makers) { (part) throws(Failure) in
            try make(count * part / parts..<count * (part + 1) / parts)
        }
        // A missing thread is no problem: this thread makes the parts that no other thread makes.
        let threads = (1..<max(1, makers)).map { _ in WorkerThread(name: "vault-part") }
        for thread in threads where thread.isRunning { thread.run { line.work() } }
        defer { line.stop() }
        for part in 0..<parts { try take(try line.value(part).get()) }
    }
}

/// Values that several threads make and one thread takes, in order.
private final class AssemblyLine<Value: Sendable, Failure: Error>: Sendable {
    private struct State {
        var made: [Int: Result<Value, Failure>] = [:]
        /// The part to make next.
        var next = 0
        var taken = 0
        var underWay = 0
        var isStopped = false
    }

    private enum Turn {
        case take(Result<Value, Failure>)
        case make(Int)
    }

    private let state = Monitor(State())
    private let parts: Int
    private let ahead: Int
    private let make: @Sendable (Int) throws(Failure) -> Value

    /// Creates an assembly line on which at most `ahead` parts wait to be taken.
    init(_ parts: Int, ahead: Int, _ make: @escaping @Sendable (Int) throws(Failure) -> Value) {
        self.parts = parts
        self.ahead = ahead
        self.make = make
    }

    /// Makes parts until none are left.
    func work() {
        while true {
            let part: Int? = state.wait { state -> Int?? in
                if state.isStopped || state.next == parts { return .some(nil) }
                return state.next < state.taken + ahead ? .some(begin(&state)) : nil
            }
            guard let part else { return }
            finish(part)
        }
    }

    /// Returns a part, made here if no other thread has begun it. Each part is taken once, in order.
    func value(_ part: Int) -> Result<Value, Failure> {
        while true {
            let turn: Turn = state.wait { state in
                if let value = state.made.removeValue(forKey: part) {
                    state.taken += 1
                    return .take(value)
                }
                return state.next < parts ? .make(begin(&state)) : nil
            }
            switch turn {
            case .take(let value):
                state.announce { _ in }
                return value
            case .make(let other): finish(other)
            }
        }
    }

    /// Prevents further parts from being begun, and waits for the parts under way.
    func stop() {
        state.announce { $0.isStopped = true }
        state.wait { $0.underWay == 0 ? () : nil }
    }

    private func begin(_ state: inout State) -> Int {
        defer { state.next += 1 }
        state.underWay += 1
        return state.next
    }

    private func finish(_ part: Int) {
        let value = Result { () throws(Failure) in try make(part) }
        state.announce { state in
            state.made[part] = value
            state.underWay -= 1
        }
    }
}
