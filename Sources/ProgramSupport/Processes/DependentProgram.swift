internal import CLinux
internal import Glibc
package import SystemPackage
package import TokenVaultPlatform

/// A program that works for this one and detects its end in every case. Its standard input is a socket to
/// this program, which then reaches its end. It has a session of its own, so that no terminal key ends it
/// first.
package final class DependentProgram {
    private let process: pid_t
    private(set) var socket: CInt

    /// Starts `program` with this program's standard error. Throws system errors.
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

    /// Returns the next message: see ``say(_:)``. Returns `nil` when the program exited, or the message is
    /// longer than `limit` bytes.
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

    /// Closes the program's input and waits for its exit. Returns the exit status, or 128 plus the signal
    /// number when a signal ended it. A second call returns -1.
    package func finish() -> Int32 {
        guard socket >= 0 else { return -1 }
        close(socket)
        socket = -1
        return ProgramStart.wait(for: process)
    }

    /// Sends the message `bytes`, none of them zero, to the parent. Called in the started program. A zero
    /// ends the message, because a path may have line breaks.
    package static func say(_ bytes: [UInt8]) throws(SystemFailure) {
        try StreamFile.write(bytes + [0], to: StandardStream.input.rawValue)
    }

    /// Waits until the parent closes the input or is gone. Called in the started program.
    package static func waitForEnd() {
        var buffer = [UInt8](repeating: 0, count: 64)
        while true {
            let result = read(StandardStream.input.rawValue, &buffer, buffer.count)
            if result == 0 || result < 0 && errno != EINTR { return }
        }
    }
}
