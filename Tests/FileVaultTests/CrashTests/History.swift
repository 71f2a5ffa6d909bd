import TokenVaultPlatform

/// What is known of one key: its value, and the commit it comes from.
struct Fact: Hashable, Sendable {
    var value: String
    /// The generation of the commit; ``unknown`` for an expected commit whose generation no caller learned.
    var generation: UInt64

    static let unknown = UInt64.max
}

typealias Facts = [String: Fact]

/// What a scripted workload did to a disk and what it was told: the model that every crash state is held
/// against.
final class History: Sendable {
    /// A call: when it began and ended, in operations of the disk, and what it changes.
    struct Call: Sendable {
        var name: String
        var start: Int
        var end: Int
        var generation: UInt64
        /// It failed: what it was to change may be seen while it runs, never afterwards.
        var isRefused = false
        var changes: [String: Fact?]
    }

    private struct State {
        var calls: [Call] = []
        var complaints: [String] = []
    }

    let disk: SimulatedDisk
    /// What is there before the first call.
    let initial: Facts
    /// Whether the calling process was killed, so that no caller learned how a call ended.
    let isKilled: @Sendable () -> Bool
    private let state = Monitor(State())

    init(
        disk: SimulatedDisk, initial: Facts = [:], isKilled: @escaping @Sendable () -> Bool = { false }
    ) {
        self.disk = disk
        self.initial = initial
        self.isKilled = isKilled
    }

    var calls: [Call] { state.withLock { $0.calls } }
    /// What the workload itself found wrong while it ran.
    var complaints: [String] { state.withLock { $0.complaints } }

    func complain(_ text: String) { state.withLock { $0.complaints.append(text) } }

    /// Runs a call that sets `values` (`nil`: removes the key) and records it. It returns its generation;
    /// `nil` when there is nothing to have one. A call that throws is to have changed nothing, unless the
    /// error says `outcomeUnknown`: then either is right, with that generation.
    func perform(
        _ name: String, _ values: [String: String?], _ body: () throws -> UInt64?
    ) {
        if isKilled() { return }
        let start = disk.position
        do {
            let generation = try body()
            record(name, values, generation: generation, start: start, end: disk.position)
        } catch is Refused {
            record(name, values, generation: nil, start: start, end: disk.position, isRefused: true)
        } catch let error as OutcomeUnknown {
            record(name, values, generation: error.generation, start: start, end: .max)
        } catch  where isKilled() {
            record(name, values, generation: Fact.unknown, start: start, end: .max)
        } catch {
            complain("\(name): \(error)")
        }
    }

    private func record(
        _ name: String, _ values: [String: String?], generation: UInt64?, start: Int, end: Int,
        isRefused: Bool = false
    ) {
        let changes = values.mapValues { value in
            value.map { Fact(value: $0, generation: generation ?? (isRefused ? Fact.unknown : 0)) }
        }
        state.withLock {
            $0.calls.append(
                Call(
                    name: name, start: start, end: end, generation: generation ?? 0, isRefused: isRefused,
                    changes: changes))
        }
    }

    /// Returns what may be found when the disk stops before the operation at `position`. That is what was
    /// acknowledged by then, with any of the calls that were under way.
    func expectation(at position: Int) -> Expectation {
        let calls = calls
        var acknowledged = initial
        var highest = initial.values.map(\.generation).max() ?? 0
        for call in calls.filter({ $0.end <= position && !$0.isRefused }).sorted(by: { $0.end < $1.end }) {
            acknowledged.apply(call.changes)
            highest = max(highest, call.generation)
        }
        let underWay = calls.filter { $0.start < position && position < $0.end }
        var allowed = [acknowledged]
        for call in underWay {
            allowed += allowed.map { facts in
                var facts = facts
                facts.apply(call.changes)
                return facts
            }
        }
        return Expectation(allowed: allowed, highest: highest)
    }
}

/// The facts that may be found, one of these sets exactly.
struct Expectation: Hashable, Sendable {
    var allowed: [Facts]
    /// The newest generation that was acknowledged: a later commit must get a higher one.
    var highest: UInt64 = 0

    /// What is wrong with having found `facts`; `nil` when they may be found.
    func complaint(about facts: Facts) -> String? {
        if allowed.contains(where: { difference(of: facts, from: $0).isEmpty }) { return nil }
        let nearest = allowed.map { difference(of: facts, from: $0) }.min { $0.count < $1.count } ?? []
        return "found what nobody was told, or lost what somebody was: \(nearest.joined(separator: "; "))"
    }

    private func isMet(_ expected: Fact?, by fact: Fact?) -> Bool {
        guard let expected, expected.generation == Fact.unknown else { return expected == fact }
        return fact?.value == expected.value
    }

    private func difference(of facts: Facts, from expected: Facts) -> [String] {
        func text(_ fact: Fact?) -> String {
            fact.map {
                "'\($0.value.prefix(12))' (\($0.value.utf8.count) bytes), generation \($0.generation)"
            }
                ?? "absent"
        }
        return Set(facts.keys).union(expected.keys).sorted().filter { !isMet(expected[$0], by: facts[$0]) }
            .map { "\($0) is \(text(facts[$0])), not \(text(expected[$0]))" }
    }
}

/// A call that failed as it was to, and changed nothing.
struct Refused: Error {}

/// A call whose end is not known.
struct OutcomeUnknown: Error {
    var generation: UInt64?
}

extension Facts {
    mutating func apply(_ changes: [String: Fact?]) {
        for (key, fact) in changes { self[key] = fact }
    }
}
