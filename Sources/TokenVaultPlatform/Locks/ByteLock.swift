internal import Glibc
package import SystemPackage

/// A lock on one byte of a file that is never written. Each byte stands for one of many resources. The kernel
/// releases the lock when its holder ends, however that happens (`fcntl(F_OFD_SETLK)`).
///
/// The lock belongs to the open file: two holders in one process exclude each other as two processes do.
package final class ByteLock: Sendable {
    private let file: PosixFile
    private let process = ProcessFacts.identifier
    /// The identity of the locked file, valid as long as the file exists.
    package let identity: FileIdentity

    private init(_ file: PosixFile, _ identity: FileIdentity) {
        self.file = file
        self.identity = identity
    }

    // Released explicitly: a program that is being started briefly shares the open file and would keep the
    // lock.
    deinit { if process == ProcessFacts.identifier { file.unlock() } }

    /// Takes the lock on the byte at `offset` of the file at `path`, which is made with mode 0600 when
    /// missing. Returns `nil` while another holder has the lock. Throws `ELOOP` for a link, `EPERM` for
    /// another user's file and for anything but a regular file.
    package static func take(_ path: FilePath, byteAt offset: Int) throws(SystemFailure) -> ByteLock? {
        while true {
            let file = try open(path)
            let attributes = try file.attributes()
            guard attributes.kind == .regular, attributes.owner == ProcessFacts.user else {
                throw SystemFailure(.notPermitted, "open")
            }
            guard try file.tryLock(byteAt: offset) else { return nil }
            // If the file was removed or replaced meanwhile, other processes would lock the new file.
            if try identity(at: path) == attributes.identity { return ByteLock(file, attributes.identity) }
        }
    }

    private static func open(_ path: FilePath) throws(SystemFailure) -> PosixFile {
        let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        return PosixFile(
            descriptor: try retrying("open") {
                path.withPlatformString { Glibc.open($0, flags, 0o600) }
            })
    }

    private static func identity(at path: FilePath) throws(SystemFailure) -> FileIdentity? {
        do {
            return try FileAttributes(at: path, followingLinks: false).identity
        } catch {
            if error.errno == .noSuchFileOrDirectory { return nil }
            throw error
        }
    }
}
