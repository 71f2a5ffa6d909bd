internal import CLinux
internal import Glibc
package import SystemPackage

/// An input that is read once, with limits on size and time: standard input, an inherited descriptor, a file
/// or a named pipe.
package final class InputSource: Sendable {
    private let descriptor: CInt
    private let isOurs: Bool

    private init(descriptor: CInt, isOurs: Bool) {
        self.descriptor = descriptor
        self.isOurs = isOurs
    }

    deinit { if isOurs { close(descriptor) } }

    /// Standard input.
    package static let standard = InputSource(descriptor: StandardStream.input.rawValue, isOurs: false)

    /// Returns the input at descriptor `number`, which the parent left open. Call this before anything else
    /// is opened: an unused number would otherwise refer to the next opened file. Reading moves the parent's
    /// own position.
    package static func inherited(_ number: CInt) throws(SystemFailure) -> InputSource {
        let copy = try retrying("fcntl(F_DUPFD_CLOEXEC)") { clinux_duplicate(number, 10) }
        return InputSource(descriptor: copy, isOurs: true)
    }

    /// Opens the file or pipe at `path`, following links. Opening a named pipe does not wait for its writer.
    package static func file(_ path: FilePath) throws(SystemFailure) -> InputSource {
        let descriptor = try retrying("open") {
            path.withPlatformString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
        }
        return InputSource(descriptor: descriptor, isOurs: true)
    }

    /// Whether this is a regular file that its group or other users can read (`fstat`).
    package var isReadableByOthers: Bool {
        var information = stat()
        guard fstat(descriptor, &information) == 0 else { return false }
        return clinux_is_regular(information.st_mode) != 0 && information.st_mode & 0o044 != 0
    }

    /// Returns everything up to the end. Throws `EFBIG` above `limit` bytes, `ETIMEDOUT` when `deadline`
    /// passes first. The caller wipes the result.
    package func readAll(limit: Int, deadline: Deadline?) throws(SystemFailure) -> [UInt8] {
        try read(limit: limit, chunk: 1 << 16, stopAtNewline: false, deadline: deadline)
    }

    /// Returns the first line without its newline, and reads nothing behind it. Throws as
    /// ``readAll(limit:deadline:)``.
    package func readLine(limit: Int, deadline: Deadline?) throws(SystemFailure) -> [UInt8] {
        try read(limit: limit, chunk: 1, stopAtNewline: true, deadline: deadline)
    }

    private func read(
        limit: Int, chunk: Int, stopAtNewline: Bool, deadline: Deadline?
    ) throws(SystemFailure) -> [UInt8] {
        var failure: SystemFailure?
        // One buffer of fixed size: growing would leave copies of a secret behind.
        var bytes = [UInt8](unsafeUninitializedCapacity: limit + 1) { buffer, count in
            while count <= limit {
                if let reason = Self.wait(for: descriptor, deadline) {
                    failure = reason
                    return
                }
                let wanted = min(chunk, limit + 1 - count)
                let result = Glibc.read(descriptor, buffer.baseAddress.map { $0 + count }, wanted)
                if result == 0 { return }
                if result > 0 {
                    count += result
                    if stopAtNewline, buffer[count - 1] == UInt8(ascii: "\n") {
                        count -= 1
                        return
                    }
                } else if errno != EINTR && errno != EAGAIN {
                    failure = SystemFailure(Errno(rawValue: errno), "read")
                    return
                }
            }
            failure = SystemFailure(.fileTooLarge, "read")
        }
        if let failure {
            SmallFile.wipe(&bytes)
            throw failure
        }
        return bytes
    }

    /// Waits until `descriptor` can be read or has ended. Returns `ETIMEDOUT` when `deadline` passes first.
    package static func wait(for descriptor: CInt, _ deadline: Deadline?) -> SystemFailure? {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while true {
            let result = poll(&waiting, 1, milliseconds(until: deadline))
            if result > 0 { return nil }
            if result == 0 {
                if deadline?.hasPassed ?? false { return SystemFailure(.timedOut, "poll") }
            } else if errno != EINTR {
                return SystemFailure(Errno(rawValue: errno), "poll")
            }
        }
    }

    /// Returns the time limit for `poll`: rounded up, at most an hour, -1 for no limit.
    package static func milliseconds(until deadline: Deadline?) -> CInt {
        guard let left = deadline?.remaining.components else { return -1 }
        if left.seconds >= 3_600 { return 3_600_000 }
        let attosecondsInOne: Int64 = 1_000_000_000_000_000
        return CInt(left.seconds * 1_000 + (left.attoseconds + attosecondsInOne - 1) / attosecondsInOne)
    }
}
