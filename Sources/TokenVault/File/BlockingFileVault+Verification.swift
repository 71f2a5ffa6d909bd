extension BlockingFileVault {
    /// Reads every byte of the vault and checks it: both keybag copies, every frame and its place in the
    /// chain, every value, the zeros behind. Values whose keys are not held are checked by digest.
    /// Changes nothing; writers wait meanwhile. `progress` gets bytes done and in all. The vault must
    /// have been unlocked once (`locked`). What is wrong is in the report; throws `rolledBack`,
    /// `unavailable`, `timedOut`, and what the system failed with.
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
