internal import Glibc
package import SystemPackage

/// The lock of one byte of a file that nobody writes: of one of many things that the file stands for. The kernel lets
/// go of it when its holder ends, however that comes (`fcntl(F_OFD_SETLK)`).
///
/// It is of the open file: two holders in one process are kept apart as two processes are.
package final class ByteLock: Sendable {
    private let file: PosixFile
    private let process = ProcessFacts.identifier
    /// Which file it is a lock of, for as long as that exists.
    package let identity: FileIdentity

    private init(_ file: PosixFile, _ identity: FileIdentity) {
        self.file = file
        self.identity = identity
    }

    // Given back rather than left to the last who has the file open, as a program that is being started has for a moment.
    deinit { if process == ProcessFacts.identifier { file.unlock() } }

    /// The lock of the byte at `offset` of the file at `path`, which is made with mode 0600 when it is missing; `nil`
    /// while another holds it. Throws `ELOOP` for a link, `EPERM` for another user's file and for what is no file.
    package static func take(_ path: FilePath, byteAt offset: Int) throws(SystemFailure) -> ByteLock? {
        while true {
            let file = try open(path)
            let attributes = try file.attributes()
            guard attributes.kind == .regular, attributes.owner == ProcessFacts.user else {
                throw SystemFailure(.notPermitted, "open")
            }
            guard try file.tryLock(byteAt: offset) else { return nil }
            // Whoever removed the file meanwhile, or put another there, would lock that one.
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
