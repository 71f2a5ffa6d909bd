#if OAuth
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

/// A program that runs, in a session of its own.
final class RunningCommand {
    struct Outcome {
        /// The exit status; 128 and the signal's number for one that a signal ended.
        var status: Int32
        var output: String
        var error: String
    }

    let process: pid_t
    private let output: FileDescriptor
    private let error: FileDescriptor
    private var said = ""
    private var isOver = false
    private var isUnread = false

    init(_ program: String, _ arguments: [String], _ environment: [String: String]) throws {
        var path = Array("/tmp/tokenvault-output-XXXXXX".utf8CString)
        let file = mkstemp(&path)
        try #require(file >= 0)
        unlink(&path)
        output = FileDescriptor(rawValue: file)
        let ends = try FileDescriptor.pipe()
        // Other children of this process must not hold these descriptors.
        for end in [file, ends.readEnd.rawValue, ends.writeEnd.rawValue] {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        error = ends.readEnd
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, file, 1)
        posix_spawn_file_actions_adddup2(&actions, ends.writeEnd.rawValue, 2)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // POSIX_SPAWN_SETSID, which Swift's Glibc does not declare. Signals are set as in a login shell.
        posix_spawnattr_setflags(
            &attributes, Int16(0x80 | CInt(POSIX_SPAWN_SETSIGDEF) | CInt(POSIX_SPAWN_SETSIGMASK)))
        var signals = sigset_t()
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        let words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
        let variables: [UnsafeMutablePointer<CChar>?] =
            environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { for word in words + variables { free(word) } }
        var process = pid_t()
        let status = posix_spawn(&process, program, &actions, &attributes, words, variables)
        try ends.writeEnd.close()
        try #require(status == 0)
        self.process = process
    }

    deinit {
        if !isOver {
            kill(process, SIGKILL)
            _ = wait()
        }
        try? output.close()
        if !isUnread { try? error.close() }
    }

    func send(_ signal: CInt) { kill(process, signal) }

    /// Stops it, and returns when all of its threads are stopped, or it has ended: on a busy machine some go on after the signal.
    func stop() {
        send(SIGSTOP)
        var change = siginfo_t()
        while waitid(P_PID, id_t(process), &change, WSTOPPED | WEXITED | WNOWAIT) != 0, errno == EINTR {}
    }

    /// Closes standard error, so that no process reads it any more.
    func stopReading() throws {
        isUnread = true
        try error.close()
    }

    /// Fills standard error, which the test does not read before ``end()``.
    func fill() throws {
        let end = try FileDescriptor.open(
            "/proc/self/fd/\(error.rawValue)", .writeOnly, options: [.nonBlocking, .closeOnExec])
        defer { try? end.close() }
        let bytes = [UInt8](repeating: UInt8(ascii: "-"), count: 4_096)
        while true {
            do { _ = try end.writeAll(bytes) } catch Errno.wouldBlock { break }
        }
    }

    /// Waits for its end, without reading what it says; false when it has not come in a minute.
    func hasEnded() -> Bool {
        let descriptor = clinux_process_descriptor(process)
        defer { close(descriptor) }
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&waiting, 1, 60_000) == 1
    }

    /// Whether it has a thread of that name, or has ended.
    func isAt(_ thread: String) -> Bool {
        let tasks = "/proc/\(process)/task"
        guard let all = try? FileManager.default.contentsOfDirectory(atPath: tasks) else { return true }
        return all.contains {
            (try? String(contentsOfFile: "\(tasks)/\($0)/comm", encoding: .utf8)) == "\(thread)\n"
        }
    }

    /// Whether it takes `signal` instead of being ended by it, or has ended.
    func takes(_ signal: CInt) throws -> Bool {
        let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        guard let start = status.firstRange(of: "SigCgt:\t")?.upperBound,
            let taken = UInt64(status[start...].prefix(16), radix: 16)
        else { return true }
        return taken & 1 << (UInt64(signal) - 1) != 0 || status.contains("State:\tZ")
    }

    /// What standard error has between `start` and the next `end`, once it is there.
    func expect(after start: String, until end: String) throws -> String {
        while true {
            if let begin = said.firstRange(of: start)?.upperBound,
                let finish = said[begin...].firstRange(of: end)?.lowerBound
            {
                return String(said[begin..<finish])
            }
            let isMore = try readMore()
            try #require(isMore, "\(start) never came, but: \(said)")
        }
    }

    /// Waits for its end.
    func end() throws -> Outcome {
        while try readMore() {}
        let status = wait()
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = try buffer.withUnsafeMutableBytes {
                try output.read(fromAbsoluteOffset: Int64(bytes.count), into: $0)
            }
            if count == 0 { break }
            bytes += buffer.prefix(count)
        }
        return Outcome(status: status, output: String(decoding: bytes, as: UTF8.self), error: said)
    }

    private func readMore() throws -> Bool {
        if isUnread { return false }
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = try buffer.withUnsafeMutableBytes { try error.read(into: $0) }
        said += String(decoding: buffer.prefix(count), as: UTF8.self)
        return count > 0
    }

    private func wait() -> Int32 {
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        isOver = true
        let signal = status & 0x7f
        return signal == 0 ? (status >> 8) & 0xff : 128 + signal
    }
}
#endif
