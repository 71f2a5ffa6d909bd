extension BlockingFileVault {
    /// Reads every byte of the vault and checks it: both keybag copies, every frame and its place in the
    /// chain, every value, the zeros behind. Values whose keys are not held are checked by digest. Changes
    /// nothing; writers wait meanwhile. `progress` gets the bytes done and the total. The vault must have
    /// been unlocked once (`locked`). The report has the damage. Throws `rolledBack`, `unavailable`,
    /// `timedOut`, and the system's failures.
    public func verify(
        progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> VerificationReport {
        try during("verify") { () throws(TokenStorageError) in
            let session = try session()
            return try session.queue.alone { () throws(TokenStorageError) in
                try session.log.verify(progress: progress) { ContentChecker(ring: session.ring) }
            }
        }
    }
}
