internal import Synchronization
internal import TokenVaultPlatform

/// Requests whose commits are written together, and what each of them is told.
struct RequestGroup {
    private struct Made {
        let request: WriteRequest
        /// Its generation, none when it changes nothing, or why it was refused.
        let outcome: Result<Generation?, TokenStorageError>
        /// Whether it found changes of the group before it, which are not durable yet.
        let follows: Bool
    }

    private let log: VaultLog
    private var group: LogGroup
    private var made: [Made] = []

    /// A group that follows what `log` holds. The caller holds the lock.
    init(after log: VaultLog) {
        self.log = log
        group = LogGroup(after: log)
    }

    /// Whether it takes no other request.
    var isFull: Bool { group.isFull }

    /// Makes the commit of `request`. Who is refused is told at once, unless it is for what the group has made so far.
    mutating func add(_ request: WriteRequest) {
        let follows = !group.isEmpty
        let outcome = Result { () throws(TokenStorageError) in try group.add(request) }
        if case .failure = outcome, !follows {
            request.finish(outcome)
        } else {
            made.append(Made(request: request, outcome: outcome, follows: follows))
        }
    }

    /// Writes the commits durably, and tells all of them their outcome, after `beforeTelling`.
    mutating func write(beforeTelling: () -> Void) {
        let error = append()
        beforeTelling()
        if error?.code == .noSpace, made.count > 1 {
            // Of those that do not fit together, what deletes has the reserve, and what is small may fit.
            for one in made {
                var single = RequestGroup(after: log)
                single.add(one.request)
                single.write {}
            }
        } else {
            for one in made { one.request.finish(Self.outcome(of: one, after: error)) }
        }
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

    /// What a request is told when the group that it is in was written, or failed.
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
            // Whether it would have been refused nobody knows; that it changed nothing is known.
            if error.code == .outcomeUnknown { error.code = .ioFailure }
        }
        return .failure(error)
    }
}
