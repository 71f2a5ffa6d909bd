internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultPlatform

/// Requests whose commits are written together, and the outcome of each.
struct RequestGroup {
    private struct Made {
        let request: WriteRequest
        /// The commit's generation, none when it changes nothing, or the reason that it was refused.
        let outcome: Result<Generation?, TokenStorageError>
        /// Whether the commit found changes of the group before it, which are not durable yet.
        let follows: Bool
    }

    private let log: VaultLog
    private var group: LogGroup
    private var made: [Made] = []

    /// Creates a group that follows what `log` holds. The caller holds the lock.
    init(after log: VaultLog) {
        self.log = log
        group = LogGroup(after: log)
    }

    /// Whether the group is full and rejects other requests.
    var isFull: Bool { group.isFull }

    /// Makes the commit of `request`. A refusal is reported at once, unless it is for what the group has made
    /// so far.
    mutating func add(_ request: WriteRequest) {
        let follows = !group.isEmpty
        let outcome = Result { () throws(TokenStorageError) in try group.add(request) }
        if case .failure = outcome, !follows {
            request.finish(outcome)
        } else {
            made.append(Made(request: request, outcome: outcome, follows: follows))
        }
    }

    /// Writes the commits durably, and reports all outcomes, after `beforeTelling`. Commits that do not fit
    /// on the disk together are made again, half by half: deletions have the reserve, and small commits may
    /// fit.
    ///
    /// Returns the requests that are still to be made. Where an earlier outcome is unknown, so is what they
    /// would find, until the lock is taken again.
    mutating func write(beforeTelling: () -> Void) -> Outcome {
        let error = append()
        beforeTelling()
        if error?.code == .noSpace, made.count > 1 {
            var left = made.map(\.request)
            for count in [left.count / 2, left.count - left.count / 2] {
                var half = RequestGroup(after: log)
                for request in left.prefix(count) { half.add(request) }
                left.removeFirst(count)
                let outcome = half.write {}
                if outcome.isUnknown { return Outcome(isUnknown: true, left: outcome.left + left) }
            }
            return Outcome(isUnknown: false, left: [])
        }
        for one in made { one.request.finish(Self.outcome(of: one, after: error)) }
        // Also after a commit that is durable: erasing what it deleted may have failed half-way.
        let hasStopped = log.stop.withLock { $0 != nil }
        return Outcome(isUnknown: error?.code == .outcomeUnknown || hasStopped, left: [])
    }

    struct Outcome {
        /// Whether it is unknown if the written bytes are on the disk, or will be.
        let isUnknown: Bool
        let left: [WriteRequest]
    }

    private mutating func append() -> TokenStorageError? {
        guard !group.isEmpty else { return nil }
        do throws(TokenStorageError) {
            try log.append(&group, to: log.state.withLock { $0.file })
            return nil
        } catch {
            return error
        }
    }

    /// Returns the outcome of a request when its group was written, or failed.
    private static func outcome(
        of made: Made, after error: TokenStorageError?
    ) -> Result<Generation?, TokenStorageError> {
        guard var error else { return made.outcome }
        switch made.outcome {
        case .success(let generation?):
            if error.code == .outcomeUnknown { error.generation = generation }
        case .success(nil):
            guard made.follows else { return made.outcome }
        case .failure:
            // The request might have been refused anyway. It certainly changed nothing.
            if error.code == .outcomeUnknown { error.code = .ioFailure }
        }
        return .failure(error)
    }
}
