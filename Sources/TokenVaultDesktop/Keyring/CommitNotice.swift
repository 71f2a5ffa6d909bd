internal import Synchronization
internal import TokenVaultCore

/// What a writer tells the other TokenVaults on the bus: which keys its commit changed.
///
/// The service's own signals name no key of a deleted item and no generation. The writer sends a notice
/// before it gives back the writers' name. So a read that starts after an acknowledged commit finds the
/// notice delivered. A notice names keys, as every item's attributes do, and no secret.
struct CommitNotice {
    static let interface = "org.tokenvault.Commits"
    static let path = "/org/tokenvault/Commits"
    private static let signal = "Committed"
    private static let type = "(sta(sb))"
    // A longer list of keys is sent as several notices.
    private static let mostKeys = 500

    let service: String
    let generation: Generation
    /// The keys that were changed, and whether each is gone.
    let keys: [(key: TokenKey, isDeleted: Bool)]

    init(service: String, generation: Generation, keys: [(key: TokenKey, isDeleted: Bool)]) {
        self.service = service
        self.generation = generation
        self.keys = keys
    }

    /// What came of a commit.
    init(_ intent: CommitIntent) {
        service = intent.service
        generation = intent.generation
        keys = intent.outcomes.map { ($0.key, $0.outcome.item == nil) }
    }

    /// Reads a notice; `nil` when the signal is none.
    init?(_ signal: BusSignal) {
        guard signal.member == Self.signal, let values = signal.values, values.isOf(Self.type),
            let number = values[1].number, number < 1 << 52
        else { return nil }
        service = values[0].text ?? ""
        generation = Generation(rawValue: number)
        keys = values[2].elements.map { (TokenKey($0[0].text ?? ""), $0[1].bool ?? false) }
    }

    /// Sends the notice to every listener on the bus.
    func send(on link: KeyringLink) {
        let make = link.make
        for start in stride(from: 0, to: keys.count, by: Self.mostKeys) {
            let some = keys[start..<min(start + Self.mostKeys, keys.count)]
            let list = make.tuples("(sb)", some.map { [make.text($0.key.name), make.bool($0.isDeleted)] })
            link.connection.emit(
                path: Self.path, interface: Self.interface, signal: Self.signal,
                make.tuple([make.text(service), make.number(generation.rawValue), list]))
        }
    }
}

extension SecretService {
    /// Tells this process's readers of a commit, and the other processes.
    func tell(_ intent: CommitIntent, on link: KeyringLink) {
        let notice = CommitNotice(intent)
        publish(notice)
        notice.send(on: link)
    }

    /// Takes the notice of a commit from another program. Does not publish a notice that is more than a
    /// second ahead of the clock: later changes would then be no news. The service's own signals report the
    /// changes of such a commit, if there are any.
    func take(_ notice: CommitNotice) {
        if notice.generation.rawValue <= WallClock.microseconds + 1_000_000 { return publish(notice) }
        memory.noteCommit(in: notice.service)
    }

    /// Tells this process's readers what they were not told yet.
    func publish(_ notice: CommitNotice) {
        if notice.keys.count > 1 { memory.noteCommit(in: notice.service) }
        // One lock covers the decision and the report, so that readers never go backwards.
        publishing.withLock { _ in
            for (key, isDeleted) in notice.keys {
                let name = KeyringMemory.Name(notice.service, key)
                guard memory.isNews(name, notice.generation, isDeleted: isDeleted) else { continue }
                hub.publish(
                    service: notice.service,
                    isDeleted ? .deleted(key, notice.generation) : .stored(key, notice.generation))
            }
        }
    }
}
