internal import TokenVaultPlatform

/// The order in which connections end to make room for a new one.
///
/// Connections without a client come first, which their threads have yet to notice. Next come the connections
/// of the process that has the most: such a program takes room from itself, not from others.
///
/// Within one process, these connections end first, in this order:
/// - idle for longest
/// - with a request that is arriving or waits for its turn
/// - with an answer that the client has not read for half a second
/// - subscribed for longest
///
/// A busy connection is never ended.
struct EvictionOrder: Comparable {
    private enum Kind: Int {
        case gone, idle, receiving, waiting, sending, subscribed
    }

    private let kind: Kind
    private let siblings: Int
    private let since: ContinuousClock.Instant

    /// Returns the connections that may end, in the order in which they end.
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
