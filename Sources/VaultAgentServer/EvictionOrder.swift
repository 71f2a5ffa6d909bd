internal import TokenVaultPlatform

/// Which connections make room for a new one.
///
/// First those whose client is gone, which their threads have yet to find. Then those of the process that has the most:
/// a program that opens ever more of them takes room from itself, not from the others. Of one process, the one that is
/// idle for longest; then one whose request is coming in, or waits for its turn; then one whose client has not read its answer for half a
/// second; then the oldest subscription. Never one that is at work.
struct EvictionOrder: Comparable {
    private enum Kind: Int {
        case gone, idle, receiving, waiting, sending, subscribed
    }

    private let kind: Kind
    private let siblings: Int
    private let since: ContinuousClock.Instant

    /// The connections that may end, the one that ends first in front.
    static func order(_ connections: [UInt64: ClientConnection]) -> [(UInt64, ClientConnection)] {
        let siblings = connections.values.reduce(into: [Int32: Int]()) { $0[$1.process, default: 0] += 1 }
        return connections.compactMap { number, connection in
            EvictionOrder(connection, siblings[connection.process] ?? 0).map { ($0, number, connection) }
        }
        .sorted { $0.0 < $1.0 }
        .map { ($0.1, $0.2) }
    }

    private init?(_ connection: ClientConnection, _ siblings: Int) {
        self.siblings = siblings
        switch connection.current {
        case .working, .ended: return nil
        case .sending(let since):
            guard since.duration(to: .now) > .milliseconds(500) else { return nil }
            (kind, self.since) = (.sending, since)
        case .subscribed(let since): (kind, self.since) = (.subscribed, since)
        case .receiving(let since): (kind, self.since) = (.receiving, since)
        case .waiting(let since): (kind, self.since) = (connection.isAbandoned ? .gone : .waiting, since)
        case .idle(let since):
            self.since = since
            kind =
                switch connection.arrival {
                case .end: .gone
                case .bytes: .receiving
                case .nothing: .idle
                }
        }
    }

    static func < (left: EvictionOrder, right: EvictionOrder) -> Bool {
        if (left.kind == .gone) != (right.kind == .gone) { return left.kind == .gone }
        if left.siblings != right.siblings { return left.siblings > right.siblings }
        return (left.kind.rawValue, left.since) < (right.kind.rawValue, right.since)
    }
}
