internal import CLinux
internal import Glibc
internal import SystemPackage

/// Tells that names came to be in a socket's directory or went, or that it went itself (`inotify(7)`).
package final class SocketDirectoryWatch: Sendable {
    let descriptor: CInt

    /// Throws what the system failed with: `EMFILE` above 128 of these for a user.
    package init(_ directory: SocketDirectory) throws(SystemFailure) {
        descriptor = try retrying("inotify_init1") { clinux_inotify() }
        // From here on the descriptor is closed when this goes.
        let descriptor = descriptor
        let path = directory.notificationPath
        _ = try retrying("inotify_add_watch") { clinux_watch_place(descriptor, path) }
    }

    deinit { close(descriptor) }

    /// Whether something happened since the last look.
    package func hasNews() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4 << 10)
        var isNew = false
        while read(descriptor, &buffer, buffer.count) > 0 { isNew = true }
        return isNew
    }
}
