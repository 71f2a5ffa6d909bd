internal import CLinux
internal import Glibc

/// Pages for keys, between two that nobody may touch, left out of core dumps and not passed on to a forked
/// child. They are never given back: a process needs few.
package struct GuardedPages: @unchecked Sendable {
    /// What keeps the pages from being read elsewhere than in this process.
    package enum Protection: Int, Comparable, Sendable {
        /// Nothing: the system refused to lock them (`ulimit -l`), and they can be written to swap.
        case unlocked
        /// `mlock(2)`: they stay in memory.
        case locked
        /// `memfd_secret(2)`: they stay in memory, and the kernel has no way to them either.
        case secret

        package static func < (left: Protection, right: Protection) -> Bool {
            left.rawValue < right.rawValue
        }
    }

    /// All of the pages' bytes, zeros at first.
    package let bytes: UnsafeMutableRawBufferPointer
    /// What the system granted.
    package let protection: Protection
    private let process: Int32
    private let forks = clinux_forks()

    /// `count` pages; of `memfd_secret(2)` if `asSecret` and the system has it. `nil` when there is no memory.
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

    /// Whether the bytes are what this process has put there. In a forked child they are zeros, or not there at all.
    package var isThere: Bool {
        // No system call where a mistake would be without harm: each use of a key asks.
        forks == clinux_forks() && (protection != .secret || ProcessFacts.identifier == process)
    }
}
