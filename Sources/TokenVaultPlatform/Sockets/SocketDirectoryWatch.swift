internal import CLinux
internal import Glibc
internal import SystemPackage

/// Detects that names in a socket's directory appeared or disappeared, or that the directory itself did
/// (`inotify(7)`).
package final class SocketDirectoryWatch: Sendable {
    let descriptor: CInt

    /// Watches `directory`. Throws system errors: `EMFILE` above 128 watches for a user.
    package init(_ directory: SocketDirectory) throws(SystemFailure) {
        descriptor = try retrying("inotify_init1") { clinux_inotify() }
        // From here on `deinit` closes the descriptor.
        let descriptor = descriptor
        let path = directory.notificationPath
        _ = try retrying("inotify_add_watch") { clinux_watch_place(descriptor, path) }
    }

    deinit { close(descriptor) }

    /// Returns whether something happened since the last call.
    package func hasNews() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4 << 10)
        var isNew = false
        while read(descriptor, &buffer, buffer.count) > 0 { isNew = true }
        return isNew
    }
}
