internal import SystemPackage
package import TokenVault
internal import TokenVaultPlatform

/// What concerns the agent and no vault of it.
package enum AgentControl {
    package static let timeout: Duration = .seconds(30)

    /// Whether an agent answers at `place`. Throws what makes it one that is not to be trusted, and `timedOut`.
    package static func isRunning(
        at place: AgentEndpoint, within timeout: Duration = timeout
    ) throws(TokenStorageError) -> Bool {
        do throws(AgentConnection.Failure) {
            _ = try ask(.vaults, at: place, timeout) { (reader, _) throws(WireError) in try reader.statuses()
            }
            return true
        } catch {
            if case .absent = error { return false }
            throw error.error("agent", isWrite: false)
        }
    }

    /// The vaults that the agent holds; none when no agent runs.
    package static func vaults(at place: AgentEndpoint) throws(TokenStorageError) -> [AgentVaultStatus] {
        do throws(AgentConnection.Failure) {
            return try ask(.vaults, at: place, timeout) { (reader, _) throws(WireError) in
                try reader.statuses()
            }
        } catch {
            if case .absent = error { return [] }
            throw error.error("status", isWrite: false)
        }
    }

    /// Locks every vault that the agent holds. Whether an agent runs.
    @discardableResult
    package static func lockAll(
        at place: AgentEndpoint, within timeout: Duration = timeout
    ) throws(TokenStorageError) -> Bool {
        try tell(.lockAll, at: place, timeout, "lock")
    }

    /// Ends the agent, when one runs, and waits until it holds nothing any more. Whether one ran. Throws `timedOut` when it
    /// still works then.
    @discardableResult
    package static func stop(
        at place: AgentEndpoint, within timeout: Duration = timeout
    ) throws(TokenStorageError) -> Bool {
        let deadline = Deadline(after: timeout)
        let holder = place.holder
        let wasRunning = try tell(.stop, at: place, timeout, "agent")
        var backOff = BackOff()
        // The next one may have begun by now, and goes on.
        while let holder, place.holder == holder {
            guard backOff.wait(until: deadline) else {
                throw TokenStorageError(
                    .timedOut, operation: "agent", backend: AgentEndpoint.backend,
                    reason: .deadline(.earlierRequest))
            }
        }
        return wasRunning
    }

    private static func tell(
        _ operation: AgentOperation, at place: AgentEndpoint, _ timeout: Duration, _ name: String
    ) throws(TokenStorageError) -> Bool {
        do throws(AgentConnection.Failure) {
            try ask(operation, at: place, timeout) { (_, _) throws(WireError) in }
            return true
        } catch {
            if case .absent = error { return false }
            throw error.error(name, isWrite: false)
        }
    }

    private static func ask<Value: Sendable>(
        _ operation: AgentOperation, at place: AgentEndpoint, _ timeout: Duration,
        _ read: (inout WireReader, _ isLast: Bool) throws(WireError) -> Value
    ) throws(AgentConnection.Failure) -> Value {
        // None of these does more when it is done twice.
        try AgentConnection.retrying(isWrite: false, within: timeout) {
            (left) throws(AgentConnection.Failure) in
            try AgentConnection(to: place, within: left)
                .perform(operation, on: VaultReference(path: ""), within: left, read)
        }
    }
}

extension WireReader {
    /// What the agent says of all of its vaults.
    package mutating func statuses() throws(WireError) -> [AgentVaultStatus] {
        let count = Int(try integer(UInt16.self))
        var statuses: [AgentVaultStatus] = []
        for _ in 0..<count { statuses.append(try status()) }
        return statuses
    }
}
