import TokenVault

/// The context of one run of a check: the subject, and services that only this run uses.
struct TestFixture: Sendable {
    let subject: any ConformanceSubject
    private let mark: String

    init(_ subject: any ConformanceSubject) {
        self.subject = subject
        mark = String(UInt64.random(in: .min ... .max), radix: 36)
    }

    /// Returns the full name of the service that this run calls `name`.
    func service(_ name: String = "app") -> String { "com.example.conformance.\(mark).\(name)" }

    /// Returns the subject's current storage of that service.
    func storage(_ name: String = "app") async throws -> any TokenStorage {
        try await subject.storage(service: service(name))
    }
}

/// Reads a storage's changes with a limit on waiting.
struct ChangeReader: Sendable {
    let changes: TokenChanges
    let eventTimeout: Duration

    init(_ storage: any TokenStorage, _ scene: TestFixture) {
        changes = storage.changes()
        eventTimeout = scene.subject.eventTimeout
    }

    /// Returns the next event, or `nil` at the end. Fails when no event comes in time.
    func next(file: String = #fileID, line: Int = #line) async throws -> TokenEvent? {
        let changes = changes
        let eventTimeout = eventTimeout
        return try await withThrowingTaskGroup(of: TokenEvent?.self) { group in
            group.addTask {
                var iterator = changes.makeAsyncIterator()
                return await iterator.next()
            }
            group.addTask {
                try await Task.sleep(for: eventTimeout)
                throw ConformanceFailure(
                    expected: "an event", found: "none within \(eventTimeout)", file: file, line: line)
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }

    /// Returns every event up to the first one of `key`, which is the last element.
    func events(until key: TokenKey, file: String = #fileID, line: Int = #line) async throws -> [TokenEvent] {
        var events: [TokenEvent] = []
        while let event = try await next(file: file, line: line) {
            events.append(event)
            if event.key == key { return events }
        }
        throw ConformanceFailure(
            expected: "an event of the last change", found: "the end of the sequence", file: file, line: line)
    }
}

extension TokenEvent {
    /// The event's key; `nil` for an overflow.
    var key: TokenKey? {
        switch self {
        case .stored(let key, _), .deleted(let key, _): key
        case .overflowed: nil
        }
    }

    /// The event's generation; `nil` for an overflow.
    var generation: Generation? {
        switch self {
        case .stored(_, let generation), .deleted(_, let generation): generation
        case .overflowed: nil
        }
    }
}
