internal import TokenVaultCrypto

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
                try session.log.verify(progress: progress) {
                    (header, bytes, content, scratch) throws(TokenStorageError) in
                    try session.check(bytes, in: content, of: header, scratch)
                }
            }
        }
    }
}

extension VaultSession {
    /// Opens the contents of an item's record, if its keys are held.
    fileprivate func check(
        _ bytes: [UInt8], in content: Range<Int>, of header: FrameHeader, _ scratch: Scratch
    ) throws(TokenStorageError) -> FrameInspection.Contents {
        // A deletion by someone who could not read the item carries no names.
        if content.isEmpty { return .whole }
        guard
            case .keys(let keys) = ring.access(
                policy: header.policy, setTag: header.setTag, version: header.keyVersion)
        else { return .notReadable }
        do {
            let isWhole = try sealer.isWhole(bytes, in: content, of: header, keys: keys, scratch)
            return isWhole ? .whole : .damaged
        } catch {
            if error.code == .locked { return .notReadable }
            throw error
        }
    }
}
