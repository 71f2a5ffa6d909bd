internal import CLinux
internal import Glibc

/// Pages for keys, between two inaccessible pages. They are left out of core dumps and not inherited by a
/// forked child. They are never returned to the system: a process needs few.
package struct GuardedPages: @unchecked Sendable {
    /// The protection of the pages against reads from outside this process.
    package enum Protection: Int, Comparable, Sendable {
        /// None: the system refused to lock the pages (`ulimit -l`), and they can be written to swap.
        case unlocked
        /// `mlock(2)`: the pages stay in memory.
        case locked
        /// `memfd_secret(2)`: the pages stay in memory, and the kernel cannot access them either.
        case secret

        package static func < (left: Protection, right: Protection) -> Bool {
            left.rawValue < right.rawValue
        }
    }

    /// The bytes of all pages, initially zero.
    package let bytes: UnsafeMutableRawBufferPointer
    /// The protection that the system granted.
    package let protection: Protection
    private let process: Int32
    private let forks = clinux_forks()

    /// Creates `count` pages, of `memfd_secret(2)` if `asSecret` and the system has it. `nil` when there is
    /// no memory.
    package init?(count: Int, asSecret: Bool = false) {
        let page = Int(sysconf(Int32(_SC_PAGESIZE)))
        guard page > 0, count > 0, let start = clinux_reserve((count + 2) * page) else { return nil }
        bytes = UnsafeMutableRawBufferPointer(start: start + page, count: count * page)
        process = ProcessFacts.identifier
        if asSecret, clinux_open_secret_pages(bytes.baseAddress, bytes.count) == 0 {
            protection = .secret
        } else if clinux_open_pages(bytes.baseAddress, bytes.count) == 0 {
            protection = mlock(bytes.baseAddress, bytes.count) == 0 ? .locked : .unlocked
        } else {
            munmap(start, (count + 2) * page)
            return nil
        }
    }

    /// Whether the bytes are as this process wrote them. In a forked child they are zero or unmapped.
    package var isThere: Bool {
        // Avoids a system call where a wrong answer does no harm: each use of a key checks this.
        forks == clinux_forks() && (protection != .secret || ProcessFacts.identifier == process)
    }
}
