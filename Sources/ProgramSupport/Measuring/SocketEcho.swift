internal import CLinux
internal import Glibc
package import SystemPackage
package import TokenVaultPlatform

/// A process that only answers with a requested number of bytes. It measures the least time that an answer
/// from another process takes on this machine.
package final class SocketEcho {
    private let program: DependentProgram
    private var buffer: [UInt8]

    /// Starts `program`, which with `arguments` calls ``serve()``. Its answers have at most `longest` bytes.
    package init(_ program: FilePath, _ arguments: [String], longest: Int) throws(SystemFailure) {
        self.program = try DependentProgram(program, arguments)
        buffer = [UInt8](repeating: 0, count: max(longest, 4))
    }

    /// Sends `request` bytes, at least four, which give the length of the answer, and receives the answer.
    /// Throws system errors, `EPIPE` when the process is gone.
    package func exchange(request: Int, answer: Int) throws(SystemFailure) {
        let count = max(4, min(request, buffer.count))
        withUnsafeBytes(of: UInt32(answer)) { length in
            for (index, byte) in length.enumerated() { buffer[index] = byte }
        }
        guard send(program.socket, buffer, count, CInt(MSG_NOSIGNAL)) == count else {
            throw SystemFailure(Errno(rawValue: errno), "send")
        }
        var received = 0
        while received < answer {
            let result = recv(program.socket, &buffer, buffer.count, 0)
            guard result > 0 else {
                throw SystemFailure(result == 0 ? .brokenPipe : Errno(rawValue: errno), "recv")
            }
            received += result
        }
    }

    /// Answers requests from standard input until it ends.
    package static func serve() {
        let socket = StandardStream.input.rawValue
        var buffer = [UInt8](repeating: 0, count: 1 << 21)
        while true {
            // A request that arrives in parts begins with its length, and only that matters.
            guard recv(socket, &buffer, buffer.count, 0) >= 4 else { return }
            let length = Int(buffer.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) })
            guard length <= buffer.count else { return }
            var sent = 0
            while sent < length {
                let result = buffer.withUnsafeBytes {
                    send(socket, $0.baseAddress.map { $0 + sent }, length - sent, CInt(MSG_NOSIGNAL))
                }
                guard result > 0 else { return }
                sent += result
            }
        }
    }
}
