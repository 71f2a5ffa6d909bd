internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultPlatform

/// The reason that a process with an open vault does not write to it.
struct WritingStop: Sendable {
    let error: TokenStorageError
    /// Whether moving the contents to a new file is enough to go on.
    let isMendable: Bool
    /// The deadline before which no repair is tried again.
    private var pause: Deadline?

    /// Creates a stop for good.
    init(_ error: TokenStorageError) {
        self.error = error
        isMendable = false
    }

    /// Creates a stop after a failure that leaves the disk's contents open, also where the kernel says later
    /// that all is written. A move to a new file writes everything again, to its last byte.
    init(after failure: SystemFailure) {
        error = .file(.readOnly, .writingStopped(.init(failure)))
        isMendable = true
    }

    /// Whether a repair is to be tried now.
    var isDue: Bool { isMendable && pause?.hasPassed ?? true }

    /// Puts the next attempt off, after one that took `time` and failed: an attempt may write all of a large
    /// vault.
    mutating func putOff(after time: Duration) { pause = Deadline(after: max(.seconds(1), time * 10)) }
}
