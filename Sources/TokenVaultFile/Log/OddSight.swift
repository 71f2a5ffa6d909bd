internal import TokenVaultCore
internal import TokenVaultPlatform

/// Tells damage from a write that is under way, for readers that take no lock. An odd sight is real when it
/// looks the same several times in a row while no writer has the lock.
struct OddSight<Sight: Equatable> {
    /// The number of equal sights that still count as a write under way: some file systems do not show that
    /// another machine has the lock.
    private let patience = 10
    private let deadline: Deadline
    private var backOff = BackOff()
    private var last: Sight?
    /// The number of looks, and how many of the last ones saw the same as the look before.
    private var looks = 0
    private var times = 0

    /// Creates a record without a look. Behind `deadline`, a sight that was seen twice in a row counts.
    init(until deadline: Deadline) { self.deadline = deadline }

    /// Forgets a file that is no longer at the path.
    mutating func forget() { (last, times) = (nil, 0) }

    /// Waits a moment after `sight` of `file`, and returns whether there is no need to look again. Throws
    /// `timedOut` where writers kept changing the sight until the deadline.
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
