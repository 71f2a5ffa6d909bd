internal import TokenVault
internal import TokenVaultPlatform

extension AgentConnection {
    /// Runs `ask` until it succeeds, for `timeout` at most, and passes it the remaining time. Repeats a
    /// request that certainly was not begun: a full agent ends idle connections. Also repeats an interrupted
    /// read (`isWrite` false) a few times, since each lock interrupts the answers under way.
    static func retrying<Value>(
        isWrite: Bool, within timeout: Duration, _ ask: (Duration) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let deadline = Deadline(after: timeout)
        var left = timeout
        var backOff = BackOff()
        var interruptions = isWrite ? mostInterruptions : 0
        while true {
            do throws(Failure) {
                return try ask(left)
            } catch {
                switch error {
                case .unreachable(let reason) where reason.code == .unavailable:
                    guard backOff.wait(until: deadline) else { throw error }
                case .interrupted(let reason)
                where reason.code == .unavailable && interruptions < mostInterruptions:
                    interruptions += 1
                default: throw error
                }
            }
            left = deadline.remaining
        }
    }

    private static let mostInterruptions = 5
}
