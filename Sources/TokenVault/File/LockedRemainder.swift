internal import Synchronization
internal import TokenVaultPlatform

/// What a vault that is locked can be asked for all the same.
package struct LockedRemainder: Sendable {
    /// Whether there are items whose keys a lock leaves.
    package let hasReadableItems: Bool
    /// The file, if the vault has no item at all.
    package let emptyFile: EmptyVaultFile?
}

/// The file of a vault without items, as it was: without any key it shows whether something was written to it since.
package struct EmptyVaultFile: Sendable {
    let identity: FileIdentity
    /// Where the next frame would go.
    let tail: Int
    /// The bytes in front of that.
    let trailer: [UInt8]

    /// Whether the file is still the one at `path`, and nothing was appended to it.
    package func isUnchanged(at path: FilePath) -> Bool {
        do {
            let location = try VaultLocation.real(
                path, configuration: FileVaultConfiguration(stateDirectory: nil), creating: false)
            let opened = try VaultFile.open(location, for: .use)
            let probe = try opened.file.read(
                Frame.checksumLength + Frame.prefixLength, at: tail - Frame.checksumLength)
            return opened.attributes.identity == identity && probe.starts(with: trailer)
                && Frame.length(ofPrefix: probe, at: Frame.checksumLength) == nil
        } catch {
            return false
        }
    }
}

extension BlockingFileVault {
    /// What can be asked for while the vault is locked; everything in one that is not. Takes in what other processes have
    /// written. No use that an idle vault counts. Throws `locked` before the first unlock, `closed`, `corrupt`, and what the
    /// system failed with.
    package func remainderOfLock() throws(TokenStorageError) -> LockedRemainder {
        try during("lock") { () throws(TokenStorageError) in
            try checkUsable()
            guard let session = state.withLock({ $0.session }) else { throw .file(.locked) }
            do throws(TokenStorageError) {
                try session.log.lookAtOthers()
            } catch {
                guard error.code == .unavailable else { throw error }
                // Nothing leads to the file now: what it had when it was read last is all that is known. What has no name any
                // more is never back.
                if session.log.hasNoName { return LockedRemainder(hasReadableItems: false, emptyFile: nil) }
            }
            try session.refreshKeys()
            return try session.log.remainder { [ring = session.ring] policy, setTag, version in
                if case .keys = ring.access(policy: policy, setTag: setTag, version: version) {
                    return true
                }
                return false
            }
        }
    }
}

extension VaultLog {
    /// Whether the file that is open was removed.
    fileprivate var hasNoName: Bool {
        (try? state.withLock { $0.file }.attributes().links) == 0
    }

    fileprivate func remainder(
        where isReadable: (_ policy: UInt8, _ setTag: UInt64, _ keyVersion: UInt32) -> Bool
    ) throws(TokenStorageError) -> LockedRemainder {
        try withFreshState { (state) throws(TokenStorageError) in
            let (readable, all) = try usingIndex(of: &state) { (index) throws(TokenStorageError) in
                (try index.count(where: isReadable), try index.figures().items)
            }
            let isEmpty = all == 0
            return LockedRemainder(
                hasReadableItems: readable > 0,
                emptyFile: isEmpty
                    ? EmptyVaultFile(identity: state.identity, tail: state.tail, trailer: state.trailer) : nil
            )
        }
    }
}
