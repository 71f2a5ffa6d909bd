internal import CLinux
internal import Glibc
package import SystemPackage

/// Facts about this process and this machine on which the vault depends.
package enum ProcessFacts {
    /// The process identifier, for detecting a fork.
    package static var identifier: Int32 { clinux_process() }
    /// The effective user, the required owner of the vault.
    package static var user: UInt32 { geteuid() }
    /// The kernel's thread number of the caller: equal to ``identifier`` on the main thread.
    package static var thread: Int32 { gettid() }

    /// The number of threads for parallel work: the processors that this process may use, one to eight
    /// (`sched_getaffinity`).
    package static var processors: Int { min(8, max(1, Int(clinux_processors()))) }

    /// Raises the soft limit of open descriptors to the hard limit (`RLIMIT_NOFILE`): a server needs one for
    /// each client.
    package static func allowAllDescriptors() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    /// Returns whether `count` more descriptors can be opened now (`RLIMIT_NOFILE`). Swift's tasks end the
    /// program when they cannot open theirs.
    package static func hasRoom(forDescriptors count: Int) -> Bool {
        var opened: [CInt] = []
        defer { for descriptor in opened { close(descriptor) } }
        while opened.count < count {
            let descriptor = clinux_duplicate(STDERR_FILENO, 3)
            guard descriptor >= 0 else { return false }
            opened.append(descriptor)
        }
        return true
    }

    /// Prevents new threads from getting heaps of their own, if the address space is limited (`RLIMIT_AS`).
    /// For each such heap glibc reserves 64 MiB when a thread first needs it. The threads could then suddenly
    /// run out of address space.
    package static func shareHeapWhereLimited() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0, limit.rlim_cur != rlim_t.max
        else {
            return
        }
        clinux_share_heap()
    }

    /// Returns whether `count` more threads can be started now (`RLIMIT_NPROC`, `RLIMIT_AS`). GLib ends the
    /// program when it cannot start its own.
    package static func hasRoom(forThreads count: Int) -> Bool {
        var threads: [WorkerThread] = []
        return (0..<count).allSatisfy { _ in
            threads.append(WorkerThread(name: "room"))
            return threads.last?.isRunning ?? false
        }
    }

    /// Disables core files and `ptrace` by the same user from now on.
    package static func forbidDumps() {
        _ = clinux_forbid_dumps()
        var limit = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    }

    /// Resets the signals that Swift's runtime catches to print a backtrace. The backtrace shows registers
    /// and memory, and on a terminal waits for a key. Ignored signals stay ignored.
    package static func forbidBacktraces() {
        for signal in [SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] {
            var action = sigaction()
            if sigaction(signal, nil, &action) == 0, clinux_is_ignored(&action) == 0 {
                clinux_default_signal(signal)
            }
        }
    }

    /// Returns the value of an environment variable, or `nil` when it is not set or empty. Only programs call
    /// this: the library reads no environment.
    package static func environment(_ name: String) -> String? {
        guard let value = getenv(name), value[0] != 0 else { return nil }
        return String(cString: value)
    }

    /// Returns a readable form of a user: the name, or the number where the user database has none.
    package static func name(ofUser number: UInt32) -> String {
        var (entry, found) = (passwd(), UnsafeMutablePointer<passwd>?.none)
        var buffer = [CChar](repeating: 0, count: 16 << 10)
        guard getpwuid_r(number, &entry, &buffer, buffer.count, &found) == 0, found != nil,
            let name = entry.pw_name
        else { return "the user with the number \(number)" }
        return "the user \(String(cString: name))"
    }

    /// The home directory from the user database, for when `HOME` is not set.
    package static var homeFromUserDatabase: FilePath? {
        guard let entry = getpwuid(geteuid()), let directory = entry.pointee.pw_dir else { return nil }
        return FilePath(platformString: directory)
    }
}
