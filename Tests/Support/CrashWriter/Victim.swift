import Glibc

/// A writer as a child process, and what it said.
final class Victim {
    private let process: pid_t
    private let pipe: CInt
    private var text = ""

    init(_ arguments: [String]) throws {
        var ends: [CInt] = [0, 0]
        guard Glibc.pipe(&ends) == 0 else { throw Failure("pipe: \(errno)") }
        // This child must not hold the reading end, and a later child must not hold this child's writing end.
        _ = fcntl(ends[0], F_SETFD, FD_CLOEXEC)
        _ = fcntl(ends[1], F_SETFD, FD_CLOEXEC)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        var words: [UnsafeMutablePointer<CChar>?] = (["/proc/self/exe"] + arguments).map { strdup($0) }
        words.append(nil)
        defer { for word in words { free(word) } }
        var started = pid_t()
        let result = posix_spawn(&started, "/proc/self/exe", &actions, nil, words, environ)
        close(ends[1])
        guard result == 0 else {
            close(ends[0])
            throw Failure("posix_spawn: \(result)")
        }
        process = started
        pipe = ends[0]
    }

    deinit { close(pipe) }

    /// Waits until the writer has said `count` lines, or has ended.
    func wait(forLines count: Int) {
        while text.utf8.count(where: { $0 == UInt8(ascii: "\n") }) < count, readMore() {}
    }

    func kill() { _ = Glibc.kill(process, SIGKILL) }

    /// Reads what is left and waits for the end. The lines that it said; throws when it ended by itself.
    func finish() throws -> [Substring] {
        while readMore() {}
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        guard status & 0x7f == SIGKILL else { throw Failure("a writer ended by itself, status \(status)") }
        return text.split(separator: "\n")
    }

    private func readMore() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = read(pipe, &buffer, buffer.count)
            if count > 0 {
                text += String(decoding: buffer[..<count], as: UTF8.self)
                return true
            }
            if count == 0 || errno != EINTR { return false }
        }
    }
}
