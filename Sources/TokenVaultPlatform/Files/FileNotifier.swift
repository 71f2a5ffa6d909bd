internal import CLinux
internal import Glibc
internal import Synchronization
internal import SystemPackage

/// An object that `inotify(7)` can watch: the open file or directory itself, wherever its path leads now.
package protocol Notifying: AnyObject, Sendable {
    /// A path to the open object.
    var notificationPath: String { get }
    /// The type of its file system, as `statfs(2)` numbers it; 0 when it cannot be determined.
    var fileSystemType: UInt64 { get }
}

/// Reports writes to files and new names in directories (`inotify(7)`).
package final class FileNotifier: Sendable {
    /// A watched file or directory. Watching the same one again gives the same watch.
    package struct Watch: Hashable, Sendable {
        fileprivate let number: CInt
    }

    /// The events since the last report.
    package struct Report: Sendable {
        /// The files that were written to.
        package var files: Set<Watch> = []
        /// The new names in directories.
        package var names: [Watch: Set<String>] = [:]
        /// Whether events were lost, so that anything may have happened.
        package var isIncomplete = false

        package init() {}
    }

    private let notifier: CInt
    private let event: WakeEvent
    /// The number of users of each watch.
    private let users = Mutex<[CInt: Int]>([:])

    /// Creates a notifier. Throws system errors: `EMFILE` above 128 notifiers for a user, or without
    /// descriptors.
    package init() throws(SystemFailure) {
        notifier = try retrying("inotify_init1") { clinux_inotify() }
        do {
            event = try WakeEvent()
        } catch {
            close(notifier)
            throw error
        }
    }

    deinit { close(notifier) }

    /// Watches writes to a file. Throws system errors: `ENOSPC` above `fs.inotify.max_user_watches`.
    package func watch(contentsOf file: any Notifying) throws(SystemFailure) -> Watch {
        let path = file.notificationPath
        return try add { clinux_watch_contents(notifier, path) }
    }

    /// Watches new names in a directory.
    package func watch(namesIn directory: any Notifying) throws(SystemFailure) -> Watch {
        let path = directory.notificationPath
        return try add { clinux_watch_names(notifier, path) }
    }

    private func add(_ call: () -> CInt) throws(SystemFailure) -> Watch {
        let result = users.withLock { users in
            Result { () throws(SystemFailure) in
                let number = try retrying("inotify_add_watch", call)
                users[number, default: 0] += 1
                return Watch(number: number)
            }
        }
        return try result.get()
    }

    /// Releases a watch. It ends when all its users have released it.
    package func release(_ watch: Watch) {
        users.withLock { users in
            let left = (users[watch.number] ?? 1) - 1
            users[watch.number] = left > 0 ? left : nil
            if left <= 0 { _ = clinux_unwatch(notifier, watch.number) }
        }
    }

    /// Ends the current wait, or the next one.
    package func wake() { event.wake() }

    /// Waits until an event happens, ``wake()`` is called or `longest` has passed; `nil` means no limit.
    package func wait(atMost longest: Duration?) -> Report {
        let isTold = event.wait(for: notifier, milliseconds: longest.map(Self.milliseconds) ?? -1)
        return isTold ? takeNotices() : Report()
    }

    private static func milliseconds(_ duration: Duration) -> CInt {
        let parts = max(.zero, min(duration, .seconds(86_400))).components
        // Rounded up: a wait of less than a millisecond would otherwise not wait at all.
        return CInt(parts.seconds * 1_000 + (parts.attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }

    private func takeNotices() -> Report {
        var report = Report()
        withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 8) { buffer in
            while true {
                let count = read(notifier, buffer.baseAddress, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return }
                var offset = 0
                while offset < count {
                    let notice = clinux_notice_at(buffer.baseAddress.map { $0 + offset }, count - offset)
                    guard notice.length > 0 else { break }
                    offset += notice.length
                    report.take(notice)
                }
            }
        }
        return report
    }
}

extension FileNotifier.Report {
    fileprivate mutating func take(_ notice: clinux_notice) {
        if notice.overflowed != 0 { isIncomplete = true }
        let watch = FileNotifier.Watch(number: notice.watch)
        if let name = notice.name, name[0] != 0 {
            names[watch, default: []].insert(String(cString: name))
        } else {
            files.insert(watch)
        }
    }
}
