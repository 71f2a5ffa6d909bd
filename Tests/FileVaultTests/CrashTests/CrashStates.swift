/// Every distinct state that the crashes of a workload can leave on its disk, and what may be found in each.
struct CrashStates: Sendable {
    private struct Candidate: Sendable {
        var position: Int
        var choice: CrashChoice
        /// What is to be found, by number; more than one where several crashes leave the same state.
        var expectations: [Int]
        /// The latest of those crashes.
        var last: Int
    }

    private var candidates: [Candidate] = []
    private var images: [CrashImage]
    private var expectations: [Expectation] = []
    private let trace: [DiskOperation]
    /// The places of the trace after which the disk was stopped.
    private(set) var crashPoints = 0

    var count: Int { candidates.count }
    /// States and crash points: a state that several crashes leave counts for each.
    var cases: Int { candidates.reduce(0) { $0 + $1.expectations.count } }

    /// The states of crashes of `history` at or after operation `first`, at most `limit` of them, from all
    /// over. `start` is what its disk held when it began; `samples` is how many random mixtures to try at each
    /// crash point.
    init(
        of history: History, from start: DiskContents, first: Int = 0, samples: Int, limit: Int = .max,
        seed: UInt64
    ) {
        trace = history.disk.trace
        // Making a state, to see whether it is new, costs a fraction of inspecting it.
        let most = limit == .max ? Int.max : max(4, 4 * limit / (trace.count + 1 - first))
        var random = SeededGenerator(seed: seed)
        var image = CrashImage(start)
        images = [image]
        var seen: [[UInt8]: Int] = [:]
        for position in 0...trace.count {
            if position >= first {
                let expectation = history.expectation(at: position)
                if expectations.last != expectation { expectations.append(expectation) }
                crashPoints += 1
                var choices = CrashChoices.all(of: image, seed: seed &+ UInt64(position), samples: samples)
                if choices.count > most {
                    let others = choices.dropFirst(CrashChoices.corners).shuffled(using: &random)
                    choices = Array(choices.prefix(CrashChoices.corners)) + others.prefix(most)
                }
                for choice in choices {
                    add(choice, at: position, digest: image.contents(after: choice).digest, seen: &seen)
                }
            }
            if position < trace.count {
                image.apply(trace[position], at: position)
                images.append(image)
            }
        }
        thin(to: limit)
    }

    private mutating func add(
        _ choice: CrashChoice, at position: Int, digest: [UInt8], seen: inout [[UInt8]: Int]
    ) {
        let expectation = expectations.count - 1
        if let known = seen[digest] {
            candidates[known].last = position
            if candidates[known].expectations.last != expectation {
                candidates[known].expectations.append(expectation)
            }
        } else {
            seen[digest] = candidates.count
            candidates.append(
                Candidate(position: position, choice: choice, expectations: [expectation], last: position))
        }
    }

    /// Keeps at most `limit` states, leaving others out evenly.
    private mutating func thin(to limit: Int) {
        guard candidates.count > limit, limit > 0 else { return }
        let step = Double(candidates.count) / Double(limit)
        candidates = (0..<limit).map { candidates[Int(Double($0) * step)] }
    }

    /// What the disk holds in a state.
    func contents(of state: Int) -> DiskContents {
        images[candidates[state].position].contents(after: candidates[state].choice)
    }

    /// What may be found in a state: each of these must be met.
    func expectations(of state: Int) -> [Expectation] {
        candidates[state].expectations.map { expectations[$0] }
    }

    /// How to come back to a state.
    func description(of state: Int) -> String {
        let candidate = candidates[state]
        let last = candidate.position > 0 ? "\(trace[candidate.position - 1])" : "nothing"
        let places =
            candidate.last == candidate.position
            ? "\(candidate.position)" : "\(candidate.position) to \(candidate.last)"
        return "crash at \(places), after \(last); \(candidate.choice.summary)"
    }
}
