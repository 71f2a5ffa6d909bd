internal import CLinux
internal import Glibc
package import SystemPackage

/// A program that works for this one and knows when it is gone, however it ended: its standard input is a socket that leads
/// here, and ends then. It has a session of its own, so that no key of a terminal ends it first.
package final class DependentProgram {
    private let process: pid_t
    private(set) var socket: CInt

    /// Starts `program`, whose standard error is this one's. Throws what the system failed with.
    package init(_ program: FilePath, _ arguments: [String]) throws(SystemFailure) {
        var ends: [CInt] = [-1, -1]
        _ = try retrying("socketpair") { clinux_socket_pair(&ends) }
        defer { close(ends[1]) }
        do throws(SystemFailure) {
            process = try ProgramStart.start(
                program, arguments, environment: ["PATH=/usr/bin:/bin", "SWIFT_BACKTRACE=enable=no"],
                closingFrom: 3
            ) {
                posix_spawn_file_actions_adddup2($0, ends[1], 0)
                posix_spawn_file_actions_addopen($0, 1, "/dev/null", O_WRONLY, 0)
            }
        } catch {
            close(ends[0])
            throw error
        }
        socket = ends[0]
    }

    deinit { _ = finish() }

    /// What it says next: see ``say(_:)``; `nil` when it ended, or goes on for more than `limit` bytes.
    package func listen(limit: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        while bytes.count <= limit {
            var byte: UInt8 = 0
            let result = recv(socket, &byte, 1, 0)
            if result < 0, errno == EINTR { continue }
            guard result == 1 else { return nil }
            if byte == 0 { return bytes }
            bytes.append(byte)
        }
        return nil
    }

    /// Lets it know that nothing more is wanted, and waits for its end: the exit status, or 128 and the signal's number when
    /// a signal ended it; -1 the second time.
    package func finish() -> Int32 {
        guard socket >= 0 else { return -1 }
        close(socket)
        socket = -1
        return ProgramStart.wait(for: process)
    }

    /// In the program that was started: says `bytes`, none of them zero, to the one that started it. A zero ends them: a path may
    /// have lines.
    package static func say(_ bytes: [UInt8]) throws(SystemFailure) {
        try StreamFile.write(bytes + [0], to: StandardStream.input.rawValue)
    }

    /// In the program that was started: waits until nothing more is wanted, or the one that started it is gone.
    package static func waitForEnd() {
        var buffer = [UInt8](repeating: 0, count: 64)
        while true {
            let result = read(StandardStream.input.rawValue, &buffer, buffer.count)
            if result == 0 || result < 0 && errno != EINTR { return }
        }
    }
}
