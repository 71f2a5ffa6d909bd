internal import TokenVaultPlatform

/// Tells damage from a write that is under way, for readers that take no lock. What looks wrong is so when it looks the same
/// several times in a row while no writer has the lock.
struct OddSight<Sight: Equatable> {
    /// How often the same sight is taken for a write that is under way: some file systems do not tell that another machine has
    /// the lock.
    private let patience = 10
    private let deadline: Deadline
    private var backOff = BackOff()
    private var last: Sight?
    /// How many looks there were, and how many of the last ones saw what the look before each had seen.
    private var looks = 0
    private var times = 0

    /// Nothing was seen yet. Behind `deadline`, a sight that was seen twice in a row counts.
    init(until deadline: Deadline) { self.deadline = deadline }

    /// The file that was looked at is not at the path any more.
    mutating func forget() { (last, times) = (nil, 0) }

    /// Waits a moment after `sight` of `file`, and returns whether there is no need to look again. Throws `timedOut` where
    /// writers kept changing what there is to see until the deadline.
    mutating func isSettled(_ sight: Sight, of file: any DiskFile) throws(TokenStorageError) -> Bool {
        looks += 1
        times = sight == last && !file.isLockedForWriting ? times + 1 : 0
        last = sight
        if times >= patience { return true }
        if backOff.wait(until: deadline) { return false }
        if times > 0 { return true }
        // One look may have taken all of the time.
        if looks < 3 { return false }
        throw .file(.timedOut, .deadline(.writer))
    }
}
