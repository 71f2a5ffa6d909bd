internal import Synchronization
package import TokenVaultCore
internal import TokenVaultPlatform

/// The information that a locked vault still gives.
package struct LockedRemainder: Sendable {
    /// Whether there are items whose keys survive a lock.
    package let hasReadableItems: Bool
    /// The file, if the vault has no item.
    package let emptyFile: EmptyVaultFile?
}

/// The past state of a file of a vault without items: without any key, it shows whether the file was written
/// to since.
package struct EmptyVaultFile: Sendable {
    let identity: FileIdentity
    /// The offset of the next frame.
    let tail: Int
    /// The bytes in front of `tail`.
    let trailer: [UInt8]

    /// Returns whether the file is still the one at `path`, and nothing was appended to it.
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
    /// Returns the information that a locked vault still gives; for an unlocked vault, all of it. Takes in
    /// other processes' writes. Does not count as a use of an idle vault. Throws `locked` before the first
    /// unlock, `closed`, `corrupt`, and the system's failures.
    package func remainderOfLock() throws(TokenStorageError) -> LockedRemainder {
        try during("lock") { () throws(TokenStorageError) in
            try checkUsable()
            guard let session = state.withLock({ $0.session }) else { throw .file(.locked) }
            do throws(TokenStorageError) {
                try session.log.lookAtOthers()
            } catch {
                guard error.code == .unavailable else { throw error }
                // Nothing leads to the file now: only its last read state is known. A file without a name
                // never returns.
                if session.log.hasNoName { return LockedRemainder(hasReadableItems: false, emptyFile: nil) }
            }
            guard try session.followKeybag() else {
                return LockedRemainder(hasReadableItems: false, emptyFile: nil)
            }
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
    /// Whether the open file was removed.
    fileprivate var hasNoName: Bool {
        (try? state.withLock { $0.file }.attributes().links) == 0
    }

    fileprivate func remainder(
        where isReadable: (_ policy: UInt8, _ setTag: UInt64, _ keyVersion: UInt32) -> Bool
    ) throws(TokenStorageError) -> LockedRemainder {
        try withCheckedState { (state) throws(TokenStorageError) in
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
