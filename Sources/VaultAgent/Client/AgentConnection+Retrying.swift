internal import TokenVault
internal import TokenVaultPlatform

extension AgentConnection {
    /// Runs `ask` until it gets through, for `timeout` at most; it is given how long it may take. What certainly was not
    /// begun is asked again: an agent that is full ends connections that nobody uses. So is, once, a read
    /// (`isWrite` false) that was interrupted.
    static func retrying<Value>(
        isWrite: Bool, within timeout: Duration, _ ask: (Duration) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let deadline = Deadline(after: timeout)
        var left = timeout
        var backOff = BackOff()
        var wasInterrupted = isWrite
        while true {
            do throws(Failure) {
                return try ask(left)
            } catch {
                switch error {
                case .unreachable(let reason) where reason.code == .unavailable:
                    guard backOff.wait(until: deadline) else { throw error }
                case .interrupted(let reason) where reason.code == .unavailable && !wasInterrupted:
                    wasInterrupted = true
                default: throw error
                }
            }
            left = deadline.remaining
        }
    }
}
