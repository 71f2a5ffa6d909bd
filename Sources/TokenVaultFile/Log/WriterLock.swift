internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultPlatform

/// The lock that keeps the writers of a vault apart. It is of the open file, so that two threads and two
/// processes are alike, and it follows the file rather than its path.
struct WriterLock {
    let file: any DiskFile

    /// Takes the lock. Throws `timedOut` at the deadline.
    func take(_ kind: FileLock, until deadline: Deadline) throws(TokenStorageError) {
        let file = file
        var backOff = BackOff()
        while true {
            do {
                if try file.tryLock(kind) { return }
            } catch {
                // The system takes no exclusive lock on a file that is open for reading only.
                if error.errno == .badFileDescriptor { throw .file(.readOnly) }
                throw .system(error)
            }
            if !backOff.wait(until: deadline) {
                throw .file(.timedOut, .deadline(.writer))
            }
        }
    }

    /// Throws `unavailable` where the file system has no locks, or its server has none.
    func requireLocks() throws(TokenStorageError) {
        let file = file
        do {
            if try file.tryLock(.shared) { file.unlock() }
        } catch {
            switch error.errno {
            case .noLocks, .notSupportedOnSocket, .noFunction, Errno.invalidArgument:
                throw .file(.unavailable, .noLocks(error.errno.rawValue))
            default: throw .system(error)
            }
        }
    }

    func release() { file.unlock() }
}
