internal import TokenVaultPlatform

/// The limits on the agent's resources that clients can use.
package struct AgentLimits: Sendable {
    /// The largest number of connections. When another client comes, the connection that was idle for longest
    /// ends.
    package var connections = 192
    /// The number of additional connections, for lock requests only. Used while all other connections are
    /// busy.
    package var lockingConnections = 16
    /// The largest number of subscriptions among the connections.
    package var subscriptions = 64
    /// The largest number of held vaults: each has keys in locked memory, and an open file.
    package var vaults = 256
    /// The size of all commits at one time, of all clients together, in bytes. Counts the running commits and
    /// the parts of incomplete commits.
    package var commitLength = 128 << 20
    /// The part of that size for one process, in bytes.
    package var commitShare = 64 << 20
    /// The longest time for the rest of a request that has begun to arrive.
    package var requestTime: Duration = .seconds(10)
    /// The longest time for a client to read its answer.
    package var answerTime: Duration = .seconds(10)
    /// The longest time for a client to read a listing while other clients wait to list.
    package var listingTime: Duration = TurnQueue.patience
    /// The longest wait of an unlock or a listing for its turn: both need much memory.
    package var turnTime: Duration = .seconds(60)
    /// The longest exclusive turn of an unlock. After that the next unlock begins, even if the first is still
    /// waiting.
    package var longestTurn: Duration = .seconds(30)
    /// The memory for all key derivations at one time, in bytes. It covers the most that one slot may ask
    /// for. It also covers two of the largest slots that `vaultctl` makes, when a turn passes on during a
    /// derivation.
    package var derivationLength: UInt64 = 2 << 30
    /// The longest wait of an unlock for memory that other derivations use.
    package var derivationTime: Duration = .seconds(30)
    /// Returns the memory that the system has available, in bytes; `nil` when that is not known.
    package var availableMemory: @Sendable () -> UInt64? = { MemoryAllowance.available() }
    /// The time that the agent runs without clients and open vaults; `nil` for no limit.
    package var unusedTime: Duration? = .seconds(600)
    /// The interval at which the agent checks that clients can still reach it, and closes vaults that locked
    /// automatically.
    package var lookTime: Duration = .seconds(1)
    /// The pause before the next check of a locked vault that could not be closed.
    package var nextLookTime: Duration = .seconds(60)
    /// The longest delay of a lock's answer for closing vaults.
    package var closingTime: Duration = .seconds(1)
    /// The longest wait at the end of the agent for running requests.
    package var endTime: Duration = .seconds(10)

    package init() {}
}
