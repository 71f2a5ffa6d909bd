internal import CLinux
internal import Glibc
internal import Synchronization
package import SystemPackage

/// A directory for sockets that only this user can access, so that its contents are trusted.
///
/// It is held by descriptor, and its names are reached through the descriptor (`/proc/self/fd`). So a long
/// path does no harm, and replacing the path redirects nothing.
package final class SocketDirectory: Sendable {
    /// The reason that the directory or its contents are not used.
    package enum Failure: Error, Equatable, Sendable {
        /// A system error.
        case system(SystemFailure)
        /// The directory at `path` is not for this user alone, or its contents are not this user's.
        case foreign(Foreign, path: String)
        /// Another kind of file is in the socket's place.
        case occupied
        /// Another process listens there.
        case inUse
        /// Another program holds a lock of the directory (`flock(2)`), but does not listen.
        case held
    }

    /// The part that is not for this user alone.
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
    // The process that has taken the directory; 0 for none.
    private let taker = Atomic<Int32>(0)

    /// Opens the directory at `path`, never through a link in its last component. With `creating` a missing
    /// directory is made with mode 0700. Its parent must exist.
    package init(_ path: FilePath, creating: Bool) throws(Failure) {
        if creating, path.withPlatformString({ mkdir($0, 0o700) }) != 0, errno != EEXIST {
            throw .system(SystemFailure(Errno(rawValue: errno), "mkdir"))
        }
        let opened = path.withPlatformString {
            clinux_openat(AT_FDCWD, $0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0)
        }
        guard opened >= 0 else {
            let reason = Errno(rawValue: errno)
            // With O_DIRECTORY, a link fails as not a directory.
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
        // A program that is being started shares the open directory and its locks for a moment. They are
        // released explicitly, so that it does not keep them.
        if taker.load(ordering: .relaxed) == ProcessFacts.identifier {
            _ = clinux_ofd_setlk(descriptor, Int16(F_UNLCK))
            flock(descriptor, LOCK_UN)
        }
        close(descriptor)
    }

    /// Returns whether there is a directory for this user alone at `path`.
    package static func isOurs(_ path: FilePath) -> Bool {
        do throws(Failure) {
            _ = try SocketDirectory(path, creating: false)
            return true
        } catch {
            return false
        }
    }

    /// Returns whether the file at `path`, without following a link, belongs to another user. Returns false
    /// when there is none.
    package static func isAnothers(_ path: FilePath) -> Bool {
        var information = stat()
        return path.withPlatformString { lstat($0, &information) } == 0 && information.st_uid != geteuid()
    }

    private func place(of name: String) -> String { "\(notificationPath)/\(name)" }

    /// Connects to the socket `name` within `timeout`. The listening process must be this user's.
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

    /// Takes the directory, whatever its contents, for the lifetime of this object. Throws `inUse` while
    /// another process has taken it. Throws `held` when a process that has not taken it keeps it locked for
    /// seconds.
    package func take() throws(Failure) {
        // A cleaner of old files briefly locks a directory (systemd-tmpfiles(8)), and skips a locked one.
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

    /// The process that has taken the directory; `nil` when there is none, or it cannot be determined. Takes
    /// no lock.
    package var holder: Int32? {
        let process = clinux_directory_holder(descriptor)
        return process > 0 ? process : nil
    }

    /// Returns whether this directory is at `path` itself, not behind a link.
    package func isAt(_ path: FilePath) -> Bool {
        guard let here = try? FileAttributes(of: descriptor),
            let there = try? FileAttributes(at: path, followingLinks: false)
        else { return false }
        return here.identity == there.identity
    }

    /// Returns the identity of the file at `name`, or `nil` when there is none or it cannot be determined.
    package func identity(of name: String) -> FileIdentity? {
        try? FileAttributes(of: name, in: descriptor).identity
    }

    /// A path to the directory, wherever it is now.
    var notificationPath: String { "/proc/self/fd/\(descriptor)" }

    /// Listens at the socket `name`, mode 0600. Replaces an existing socket of this user, so the caller must
    /// ensure that no process listens at it: see ``take()``. Throws `occupied` for any other existing file,
    /// `foreign` for another user's.
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
            // The mode of the name that bind(2) makes. The sticky bit keeps cleaners of old files away from
            // it.
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
            // A link, a directory or a socket is in the place of a file. For bind(2), any file is in the
            // place.
            case (.tooManySymbolicLinkLevels, _), (.isDirectory, _), (.noSuchAddressOrDevice, _),
                (.addressInUse, "bind"):
                throw .occupied
            // The time limit for connecting has passed.
            case (.resourceTemporarilyUnavailable, "connect"):
                throw .system(SystemFailure(.timedOut, "connect"))
            default: throw .system(error)
            }
        }
    }

    /// Renames a file in the directory (`renameat(2)`).
    package func rename(_ name: String, to other: String) {
        _ = renameat(descriptor, name, descriptor, other)
    }

    /// Removes the name.
    package func remove(_ name: String) { unlinkat(descriptor, name, 0) }
}
