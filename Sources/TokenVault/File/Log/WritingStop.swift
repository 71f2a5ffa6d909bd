internal import SystemPackage
internal import TokenVaultPlatform

/// Why a process that has a vault open does not write to it.
struct WritingStop: Sendable {
    let error: TokenStorageError
    /// Whether moving what is there to a new file is enough to go on.
    let isMendable: Bool
    /// Before that it is not tried to be mended again.
    private var pause: Deadline?

    /// For good.
    init(_ error: TokenStorageError) {
        self.error = error
        isMendable = false
    }

    /// After a failure that leaves open what is on the disk, also where the kernel says later that all of it is. What moves to a
    /// new file is written anew, to its last byte.
    init(after failure: SystemFailure) {
        error = .file(.readOnly, .writingStopped(.init(failure)))
        isMendable = true
    }

    /// Whether it is to be tried now.
    var isDue: Bool { isMendable && pause?.hasPassed ?? true }

    /// Puts the next attempt off, after one that took `time` and failed: it may be all of a large vault that is written.
    mutating func putOff(after time: Duration) { pause = Deadline(after: max(.seconds(1), time * 10)) }
}
