internal import CLinux
internal import Glibc
package import SystemPackage

/// Facts about this process and this machine that the vault depends on.
package enum ProcessFacts {
    /// The process, to notice a fork.
    package static var identifier: Int32 { clinux_process() }
    /// The effective user, who must own the vault.
    package static var user: UInt32 { geteuid() }
    /// The kernel's thread number of the caller: equal to ``identifier`` on the main thread.
    package static var thread: Int32 { gettid() }

    /// How many threads to split work among: the processors this process may use, one to eight
    /// (`sched_getaffinity`).
    package static var processors: Int { min(8, max(1, Int(clinux_processors()))) }

    /// Raises the soft limit of open descriptors to the hard one (`RLIMIT_NOFILE`): a server needs one for each client.
    package static func allowAllDescriptors() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    /// Whether `count` more descriptors can be opened now (`RLIMIT_NOFILE`). Swift's tasks end the program when theirs cannot.
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

    /// From now on no thread gets a heap of its own, if addresses are limited (`RLIMIT_AS`): glibc reserves 64 MiB of them for
    /// each, as threads come to need one, and what had room for all threads a moment before has none then.
    package static func shareHeapWhereLimited() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0, limit.rlim_cur != rlim_t.max
        else {
            return
        }
        clinux_share_heap()
    }

    /// Whether `count` more threads can be had now (`RLIMIT_NPROC`, `RLIMIT_AS`). GLib ends the program when its own cannot.
    package static func hasRoom(forThreads count: Int) -> Bool {
        var threads: [WorkerThread] = []
        return (0..<count).allSatisfy { _ in
            threads.append(WorkerThread(name: "room"))
            return threads.last?.isRunning ?? false
        }
    }

    /// Makes core files and `ptrace` by the same user impossible from now on.
    package static func forbidDumps() {
        _ = clinux_forbid_dumps()
        var limit = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    }

    /// Takes from Swift's runtime the signals it catches to print a backtrace: it shows registers and memory,
    /// and on a terminal waits for a key. Those that are ignored stay so.
    package static func forbidBacktraces() {
        for signal in [SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] {
            var action = sigaction()
            if sigaction(signal, nil, &action) == 0, clinux_is_ignored(&action) == 0 {
                clinux_default_signal(signal)
            }
        }
    }

    /// The value of an environment variable; `nil` when it is not set or empty. Only programs ask: the
    /// library reads no environment.
    package static func environment(_ name: String) -> String? {
        guard let value = getenv(name), value[0] != 0 else { return nil }
        return String(cString: value)
    }

    /// A user as a person knows them: by name, or by number where the user database has none.
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
