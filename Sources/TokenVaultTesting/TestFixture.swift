import TokenVault

/// What one run of a check works with: the subject, and services that nobody else uses.
struct TestFixture: Sendable {
    let subject: any ConformanceSubject
    private let mark: String

    init(_ subject: any ConformanceSubject) {
        self.subject = subject
        mark = String(UInt64.random(in: .min ... .max), radix: 36)
    }

    /// The full name of the service this run calls `name`.
    func service(_ name: String = "app") -> String { "com.example.conformance.\(mark).\(name)" }

    /// The storage of that service, as the subject gives it now.
    func storage(_ name: String = "app") async throws -> any TokenStorage {
        try await subject.storage(service: service(name))
    }
}

/// Reads a storage's changes with a bound on waiting.
struct ChangeReader: Sendable {
    let changes: TokenChanges
    let patience: Duration

    init(_ storage: any TokenStorage, _ scene: TestFixture) {
        changes = storage.changes()
        patience = scene.subject.patience
    }

    /// The next event, or `nil` at the end. Fails when nothing comes.
    func next(file: String = #fileID, line: Int = #line) async throws -> TokenEvent? {
        let changes = changes
        let patience = patience
        return try await withThrowingTaskGroup(of: TokenEvent?.self) { group in
            group.addTask {
                var iterator = changes.makeAsyncIterator()
                return await iterator.next()
            }
            group.addTask {
                try await Task.sleep(for: patience)
                throw ConformanceFailure(
                    expected: "an event", found: "none within \(patience)", file: file, line: line)
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }

    /// Every event up to the first one of `key`, which is the last element.
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
    /// The key it is about; `nil` for an overflow.
    var key: TokenKey? {
        switch self {
        case .stored(let key, _), .deleted(let key, _): key
        case .overflowed: nil
        }
    }

    /// The generation it tells; `nil` for an overflow.
    var generation: Generation? {
        switch self {
        case .stored(_, let generation), .deleted(_, let generation): generation
        case .overflowed: nil
        }
    }
}
