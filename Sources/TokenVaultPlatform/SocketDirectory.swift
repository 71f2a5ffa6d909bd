internal import CLinux
internal import Glibc
internal import Synchronization
package import SystemPackage

/// A directory in which sockets of this user are, and nobody else's: what is in it can be trusted to be ours.
///
/// It is held by descriptor, and the names in it are reached through that (`/proc/self/fd`), so that neither a long path
/// nor one that is replaced meanwhile leads elsewhere.
package final class SocketDirectory: Sendable {
    /// Why the directory, or what is in it, is not used.
    package enum Failure: Error, Equatable, Sendable {
        /// The system said so.
        case system(SystemFailure)
        /// The directory at `path` is no directory of this user's alone, or what is in it is not this user's.
        case foreign(Foreign, path: String)
        /// Something else is where the socket should be.
        case occupied
        /// Another process listens there.
        case inUse
        /// Another program holds a lock of the directory (`flock(2)`), and does not listen.
        case held
    }

    /// The part that is not this user's alone.
    package enum Foreign: Equatable, Sendable {
        /// The directory is a link, or another kind of file.
        case notADirectory
        /// Another user owns the directory.
        case ownedByAnotherUser
        /// Other users may open the directory.
        case openToOthers
        /// A program of another user answers at the socket.
        case answeredByAnotherUser
        /// Another user owns the socket.
        case socketOfAnotherUser
    }

    private let descriptor: CInt
    private let path: FilePath
    // The process that has taken it; 0 for none.
    private let taker = Atomic<Int32>(0)

    /// Opens the directory at `path`, never through a link in its last part. With `creating` it is made, 0700, when it
    /// is missing; what it is to be in has to be there.
    package init(_ path: FilePath, creating: Bool) throws(Failure) {
        if creating, path.withPlatformString({ mkdir($0, 0o700) }) != 0, errno != EEXIST {
            throw .system(SystemFailure(Errno(rawValue: errno), "mkdir"))
        }
        let opened = path.withPlatformString {
            clinux_openat(AT_FDCWD, $0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0)
        }
        guard opened >= 0 else {
            let reason = Errno(rawValue: errno)
            // With O_DIRECTORY, a link is no directory.
            if reason == .notDirectory || reason == .tooManySymbolicLinkLevels {
                throw .foreign(.notADirectory, path: path.string)
            }
            throw .system(SystemFailure(reason, "open"))
        }
        descriptor = opened
        self.path = path
        var information = stat()
        guard fstat(descriptor, &information) == 0 else {
            throw .system(SystemFailure(Errno(rawValue: errno), "fstat"))
        }
        guard information.st_uid == geteuid() else {
            throw .foreign(.ownedByAnotherUser, path: path.string)
        }
        guard information.st_mode & 0o077 == 0 else {
            throw .foreign(.openToOthers, path: path.string)
        }
    }

    deinit {
        // A program that is being started has the open directory until it runs, and its locks with that: they are given back
        // rather than left to the last who has it.
        if taker.load(ordering: .relaxed) == ProcessFacts.identifier {
            _ = clinux_ofd_setlk(descriptor, Int16(F_UNLCK))
            flock(descriptor, LOCK_UN)
        }
        close(descriptor)
    }

    /// Whether there is a directory of this user's alone at `path`.
    package static func isOurs(_ path: FilePath) -> Bool {
        do throws(Failure) {
            _ = try SocketDirectory(path, creating: false)
            return true
        } catch {
            return false
        }
    }

    /// Whether what is at `path`, itself and not what it leads to, belongs to another user. False when there is nothing.
    package static func isAnothers(_ path: FilePath) -> Bool {
        var information = stat()
        return path.withPlatformString { lstat($0, &information) } == 0 && information.st_uid != geteuid()
    }

    private func place(of name: String) -> String { "\(notificationPath)/\(name)" }

    /// Connects to the socket `name` within `timeout`, to a process of this user's.
    package func connect(to name: String, within timeout: Duration) throws(Failure) -> UnixSocket {
        let place = place(of: name)
        let (socket, user) = try Self.translating { () throws(SystemFailure) in
            let socket = UnixSocket(descriptor: try retrying("socket") { clinux_socket() })
            try socket.setSendTimeout(timeout)
            _ = try retrying("connect") { clinux_connect(socket.descriptor, place) }
            return (socket, try socket.peer().user)
        }
        guard user == ProcessFacts.user else {
            throw .foreign(.answeredByAnotherUser, path: path.string)
        }
        return socket
    }

    /// Takes the directory, whatever is in it, for as long as this lives. Throws `inUse` while another process has it, and
    /// `held` when one that has not keeps it locked for seconds.
    package func take() throws(Failure) {
        // Who clears away old files has a directory for a moment (systemd-tmpfiles(8)), and leaves one alone that is taken.
        let deadline = Deadline(after: .seconds(5))
        var backOff = BackOff()
        while clinux_take_directory(descriptor) != 0 {
            let reason = Errno(rawValue: errno)
            if reason == .interrupted { continue }
            guard reason == .wouldBlock else { throw .system(SystemFailure(reason, "flock")) }
            guard holder == nil else { throw .inUse }
            guard backOff.wait(until: deadline) else { throw .held }
        }
        taker.store(ProcessFacts.identifier, ordering: .relaxed)
    }

    /// The process that has taken the directory; `nil` when none has, or that cannot be told. Looks, and takes nothing.
    package var holder: Int32? {
        let process = clinux_directory_holder(descriptor)
        return process > 0 ? process : nil
    }

    /// Whether this is what is at `path`, itself and not behind a link.
    package func isAt(_ path: FilePath) -> Bool {
        guard let here = try? FileAttributes(of: descriptor),
            let there = try? FileAttributes(at: path, followingLinks: false)
        else { return false }
        return here.identity == there.identity
    }

    /// What has the name now; `nil` when nothing has, or that cannot be told.
    package func identity(of name: String) -> FileIdentity? {
        try? FileAttributes(of: name, in: descriptor).identity
    }

    /// The path that leads to it, wherever it is by now.
    var notificationPath: String { "/proc/self/fd/\(descriptor)" }

    /// Listens at the socket `name`, mode 0600. A socket of this user's that is there is replaced, so the caller must
    /// know that nobody listens at it: see ``take()``. Anything else that is there is `occupied`, another user's
    /// `foreign`.
    package func listen(at name: String) throws(Failure) -> SocketListener {
        var information = stat()
        if fstatat(descriptor, name, &information, AT_SYMLINK_NOFOLLOW) == 0 {
            guard clinux_is_socket(information.st_mode) != 0 else { throw .occupied }
            guard information.st_uid == geteuid() else {
                throw .foreign(.socketOfAnotherUser, path: path.string)
            }
            unlinkat(descriptor, name, 0)
        }
        let place = place(of: name)
        return try Self.translating { () throws(SystemFailure) in
            let listener = SocketListener(descriptor: try retrying("socket") { clinux_socket() })
            // The mode of the name that bind(2) makes. The sticky bit keeps those who clear away old files from it.
            _ = try retrying("fchmod") { fchmod(listener.descriptor, 0o1600) }
            _ = try retrying("bind") { clinux_bind(listener.descriptor, place) }
            _ = try retrying("listen") { Glibc.listen(listener.descriptor, 128) }
            return listener
        }
    }

    private static func translating<Value>(
        _ body: () throws(SystemFailure) -> Value
    ) throws(Failure) -> Value {
        do {
            return try body()
        } catch {
            switch (error.errno, error.call) {
            // What is in the place is a link, a directory or a socket where a file should be, or anything at all.
            case (.tooManySymbolicLinkLevels, _), (.isDirectory, _), (.noSuchAddressOrDevice, _),
                (.addressInUse, "bind"):
                throw .occupied
            // The time to connect is over.
            case (.resourceTemporarilyUnavailable, "connect"):
                throw .system(SystemFailure(.timedOut, "connect"))
            default: throw .system(error)
            }
        }
    }

    /// Gives what has the name another one (`renameat(2)`).
    package func rename(_ name: String, to other: String) {
        _ = renameat(descriptor, name, descriptor, other)
    }

    /// Removes the name.
    package func remove(_ name: String) { unlinkat(descriptor, name, 0) }
}
