import TokenVaultPlatform

/// What is known of one key: its value, and the commit it comes from.
struct Fact: Hashable, Sendable {
    var value: String
    var generation: UInt64
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
        var changes: [String: Fact?]
    }

    private struct State {
        var calls: [Call] = []
        var complaints: [String] = []
    }

    let disk: SimulatedDisk
    private let state = Monitor(State())

    init(disk: SimulatedDisk) { self.disk = disk }

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
        let start = disk.position
        do {
            let generation = try body()
            record(name, values, generation: generation, start: start, end: disk.position)
        } catch let error as OutcomeUnknown {
            record(name, values, generation: error.generation, start: start, end: .max)
        } catch {
            complain("\(name): \(error)")
        }
    }

    private func record(
        _ name: String, _ values: [String: String?], generation: UInt64?, start: Int, end: Int
    ) {
        let changes = values.mapValues { value in
            value.map { Fact(value: $0, generation: generation ?? 0) }
        }
        state.withLock { $0.calls.append(Call(name: name, start: start, end: end, changes: changes)) }
    }

    /// What may be found when the disk stops before the operation at `position`: what was acknowledged by
    /// then, with any of the calls that were under way.
    func expectation(at position: Int) -> Expectation {
        let calls = calls
        var acknowledged: Facts = [:]
        for call in calls.filter({ $0.end <= position }).sorted(by: { $0.end < $1.end }) {
            acknowledged.apply(call.changes)
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
        return Expectation(allowed: allowed)
    }
}

/// The facts that may be found, one of these sets exactly.
struct Expectation: Hashable, Sendable {
    var allowed: [Facts]
}

/// A call whose end is not known.
struct OutcomeUnknown: Error {
    var generation: UInt64?
}

extension Facts {
    mutating func apply(_ changes: [String: Fact?]) {
        for (key, fact) in changes { self[key] = fact }
    }
}
