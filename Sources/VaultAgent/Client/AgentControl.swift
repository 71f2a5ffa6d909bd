internal import SystemPackage
package import TokenVault
internal import TokenVaultPlatform

/// Operations on the agent itself, without a vault.
package enum AgentControl {
    package static let timeout: Duration = .seconds(30)

    /// Returns whether an agent answers at `place`. Throws the reason that the agent is not to be trusted,
    /// and `timedOut`.
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

    /// Returns the vaults that the agent holds; an empty array when no agent runs.
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

    /// Locks every vault that the agent holds. Returns whether an agent runs.
    @discardableResult
    package static func lockAll(
        at place: AgentEndpoint, within timeout: Duration = timeout
    ) throws(TokenStorageError) -> Bool {
        try tell(.lockAll, at: place, timeout, "lock")
    }

    /// Ends the agent, if one runs, and waits until it holds no vault. Returns whether one ran. Throws
    /// `timedOut` when the agent is still running at the end of `timeout`.
    @discardableResult
    package static func stop(
        at place: AgentEndpoint, within timeout: Duration = timeout
    ) throws(TokenStorageError) -> Bool {
        let deadline = Deadline(after: timeout)
        let holder = place.holder
        let wasRunning = try tell(.stop, at: place, timeout, "agent")
        var backOff = BackOff()
        // The next agent may have started by now; it keeps running.
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
        // Repeating one of these requests has no further effect.
        try AgentConnection.retrying(isWrite: false, within: timeout) {
            (left) throws(AgentConnection.Failure) in
            try AgentConnection(to: place, within: left)
                .perform(operation, on: VaultReference(path: ""), within: left, read)
        }
    }
}

extension WireReader {
    /// Reads the status of all of the agent's vaults.
    package mutating func statuses() throws(WireError) -> [AgentVaultStatus] {
        let count = Int(try integer(UInt16.self))
        var statuses: [AgentVaultStatus] = []
        for _ in 0..<count { statuses.append(try status()) }
        return statuses
    }
}
