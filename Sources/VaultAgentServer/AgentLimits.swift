internal import TokenVaultPlatform

/// What clients may take of the agent, whatever they do.
package struct AgentLimits: Sendable {
    /// How many connections there are at once. When one more comes, the one that was idle for longest is ended.
    package var connections = 192
    /// How many more there are for those who lock, when all the others are at work.
    package var lockingConnections = 16
    /// How many of them may be subscriptions.
    package var subscriptions = 64
    /// How many vaults it holds: each has keys in locked memory, and an open file.
    package var vaults = 256
    /// How many bytes of commits there may be at once, of all clients together: those that are made, and the parts of
    /// those that wait for their ends.
    package var commitLength = 128 << 20
    /// How many of them one process may have.
    package var commitShare = 64 << 20
    /// How long the rest of a request may take that has begun.
    package var requestTime: Duration = .seconds(10)
    /// How long a client may take to read what it is sent.
    package var answerTime: Duration = .seconds(10)
    /// How long it may take when others wait to list.
    package var listingTime: Duration = TurnQueue.patience
    /// How long an unlock, or a listing, waits for its turn: both take much memory.
    package var turnTime: Duration = .seconds(60)
    /// How long an unlock has its turn to itself: after that the next one begins, whatever the first is waiting for.
    package var longestTurn: Duration = .seconds(30)
    /// In how many bytes keys are derived at once: the most that one slot may ask for, and room for the two largest slots that
    /// `vaultctl` makes, when a turn passes on while its key is still derived.
    package var derivationLength: UInt64 = 2 << 30
    /// How long an unlock waits for memory that other derivations have.
    package var derivationTime: Duration = .seconds(30)
    /// How many bytes the system has for it; `nil` when that cannot be told.
    package var availableMemory: @Sendable () -> UInt64? = { MemoryAllowance.available() }
    /// How long the agent goes on without clients and vaults that are open; `nil` for ever.
    package var unusedTime: Duration? = .seconds(600)
    /// How often it looks, otherwise, whether it can still be reached, and what of its vaults locked by itself.
    package var lookTime: Duration = .seconds(1)
    /// The pause before the next look at a locked vault that could not be closed.
    package var nextLookTime: Duration = .seconds(60)
    /// How long the answer to a lock waits for vaults to be closed.
    package var closingTime: Duration = .seconds(1)
    /// How long the end waits for requests that are under way.
    package var endTime: Duration = .seconds(10)

    package init() {}
}
