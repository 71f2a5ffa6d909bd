internal import TokenVault
internal import TokenVaultPlatform

extension AgentConnection {
    /// Runs `ask` until it gets through, for `timeout` at most; it is given how long it may take. What certainly was not
    /// begun is asked again: an agent that is full ends connections that nobody uses. So is, some times, a read
    /// (`isWrite` false) that was interrupted: each lock interrupts what is being told.
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
