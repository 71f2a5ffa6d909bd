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
                    (header, bytes, content) throws(TokenStorageError) in
                    try session.check(bytes, in: content, of: header)
                }
            }
        }
    }
}

extension VaultSession {
    /// Opens the contents of an item's record, if its keys are held.
    fileprivate func check(
        _ bytes: [UInt8], in content: Range<Int>, of header: FrameHeader
    ) throws(TokenStorageError) -> FrameInspection.Contents {
        // A deletion by someone who could not read the item carries no names.
        if content.isEmpty { return .whole }
        guard
            case .keys(let keys) = ring.access(
                policy: header.policy, setTag: header.setTag, version: header.keyVersion)
        else { return .notReadable }
        let isDeletion = header.type == RecordType.deletion.rawValue
        let split = content.lowerBound + header.metadataLength
        do {
            let metadata = try sealer.openMetadata(
                bytes, in: content.lowerBound..<split, of: header.item, generation: header.generation,
                keys: keys,
                isDeletion: isDeletion)
            guard metadata != nil else { return .damaged }
            if isDeletion { return .whole }
            let secret = try sealer.openBody(
                bytes, in: split..<content.upperBound, of: header.item, generation: header.generation,
                keys: keys)
            return secret == nil ? .damaged : .whole
        } catch {
            if error.code == .locked { return .notReadable }
            throw error
        }
    }
}
