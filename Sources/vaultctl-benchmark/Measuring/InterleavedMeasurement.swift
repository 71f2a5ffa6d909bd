import ProgramSupport
import TokenVault
import TokenVaultPlatform

/// Measures several backends and the machine's limits in short turns, until the time is over.
struct InterleavedMeasurement {
    let subjects: [Subject]
    let probes: [LimitProbe]
    let secret: Secret
    let time: Duration
    /// The number of calls of each kind that is enough.
    let samples: Int?
    let interruption: SignalGuard

    private final class Track {
        let subject: Subject
        var latencies: [Operation: Latencies] = [:]

        init(_ subject: Subject) { self.subject = subject }

        func count(_ operation: Operation) -> Int { latencies[operation]?.count ?? 0 }
    }

    /// The length of one turn for one kind of call. The length allows several turns, and lets each turn reach
    /// full speed.
    private var turn: Duration {
        min(.milliseconds(50), max(.milliseconds(2), time / (10 * max(1, subjects.count) * 3)))
    }

    /// Runs the measurement. `progress` receives the elapsed share of the time, 0 to 1.
    func run(_ progress: (Double) -> Void) throws(CommandFailure) -> [Measurement] {
        let tracks = subjects.map { Track($0) }
        let deadline = Deadline(after: time)
        repeat {
            for track in tracks {
                try interruption.check()
                progress(1 - deadline.remaining / time)
                try run(track)
            }
            for probe in probes {
                let end = Deadline(after: turn / 2)
                repeat { try probe.measure() } while !end.hasPassed && isWanted(probe.latencies.count)
            }
        } while !deadline.hasPassed
            && tracks.contains { isWanted($0.count(.retrieve)) || isWanted($0.count(.store)) }
        return tracks.flatMap { track in
            Operation.allCases.map { operation in
                Measurement(
                    backend: track.subject.name, operation: operation, items: track.subject.items,
                    valueSize: secret.count, latencies: track.latencies[operation] ?? Latencies())
            }
        }
    }

    private func isWanted(_ count: Int) -> Bool { samples.map { count < $0 } ?? true }

    /// Runs one turn. A turn stores as many items as fit into its time, retrieves present items, and deletes
    /// the stored items.
    private func run(_ track: Track) throws(CommandFailure) {
        let subject = track.subject
        var stored = 0
        try repeating(track, .store) { (key) throws(TokenStorageError) in
            _ = try subject.storage.store(secret, for: key)
        } key: {
            stored += 1
            return Self.key("sample", stored)
        }
        var isWhole = true
        try repeating(track, .retrieve) { (key) throws(TokenStorageError) in
            let found = try subject.storage.secret(for: key)
            isWhole = isWhole && found?.count == secret.count
        } key: {
            Self.key("item", Int.random(in: 0..<subject.items))
        }
        guard isWhole else {
            throw CommandFailure(.failure, "\(subject.name) returned another value", "please report this")
        }
        for number in stride(from: stored, to: 0, by: -1) {
            let key = Self.key("sample", number)
            try time(track, .delete, key) { (key) throws(TokenStorageError) in
                isWhole = try subject.storage.delete(for: key) && isWhole
            }
        }
        guard isWhole else {
            throw CommandFailure(.failure, "\(subject.name) deleted nothing", "please report this")
        }
    }

    private func repeating(
        _ track: Track, _ operation: Operation, _ call: (TokenKey) throws(TokenStorageError) -> Void,
        key: () -> TokenKey
    ) throws(CommandFailure) {
        guard isWanted(track.count(operation)) else { return }
        let end = Deadline(after: turn)
        repeat {
            try time(track, operation, key(), call)
        } while !end.hasPassed && isWanted(track.count(operation))
    }

    private func time(
        _ track: Track, _ operation: Operation, _ key: TokenKey,
        _ call: (TokenKey) throws(TokenStorageError) -> Void
    ) throws(CommandFailure) {
        let start = ContinuousClock.now
        try calling(track.subject.name) { () throws(TokenStorageError) in try call(key) }
        let end = ContinuousClock.now
        track.latencies[operation, default: Latencies()].record(start.duration(to: end))
        // A slow call fills its turn alone.
        if start.duration(to: end) > .milliseconds(1) { try interruption.check() }
    }

    static func key(_ kind: String, _ number: Int) -> TokenKey { TokenKey("\(kind)-\(number)") }
}
