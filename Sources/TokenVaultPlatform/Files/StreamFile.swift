internal import CLinux
internal import Glibc
package import SystemPackage

/// Streams as files that can be read and written at any position.
package enum StreamFile {
    /// Opens the file at `path` for reading, following links. An irregular file is read to its end into a
    /// nameless file in `directory`. Opening a named pipe does not wait for its writer, but reading it does:
    /// `ETIMEDOUT` of `poll` when `deadline` passes first.
    package static func reading(
        _ path: FilePath, spoolingIn directory: FilePath, deadline: Deadline?
    ) throws(SystemFailure) -> any DiskFile {
        let descriptor = try retrying("open") {
            path.withPlatformString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
        }
        var information = stat()
        guard fstat(descriptor, &information) == 0 else {
            let reason = Errno(rawValue: errno)
            close(descriptor)
            throw SystemFailure(reason, "fstat")
        }
        if clinux_is_regular(information.st_mode) != 0 { return PosixFile(descriptor: descriptor) }
        defer { close(descriptor) }
        return try spooled(descriptor, in: directory, deadline: deadline)
    }

    /// Reads `descriptor` to its end into a nameless file in `directory`. Throws `ETIMEDOUT` of `poll` when
    /// `deadline` passes first.
    package static func spooled(
        _ descriptor: CInt, in directory: FilePath, deadline: Deadline?
    ) throws(SystemFailure) -> any DiskFile {
        let file = try nameless(in: directory)
        var offset = 0
        while true {
            // Also before the first read: a pipe without a writer yet would seem to have ended.
            if let failure = InputSource.wait(for: descriptor, deadline) { throw failure }
            var result = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: 1 << 18) { buffer, count in
                result = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                count = max(0, result)
            }
            if result == 0 { return file }
            if result < 0 {
                let reason = Errno(rawValue: errno)
                guard reason == .interrupted || reason == .resourceTemporarilyUnavailable else {
                    throw SystemFailure(reason, "read")
                }
                continue
            }
            try file.write(bytes, at: offset)
            offset += bytes.count
        }
    }

    /// Returns at most the first `count` bytes of the file at `path`, or of standard input for `nil`, without
    /// consuming them. Returns `nil` for an irregular or unreadable file.
    package static func beginning(of path: FilePath?, _ count: Int) -> [UInt8]? {
        guard let path else { return beginning(of: StandardStream.input.rawValue, count) }
        // A pipe is not opened: its writer would take this process for its reader.
        var information = stat()
        guard path.withPlatformString({ stat($0, &information) }) == 0,
            clinux_is_regular(information.st_mode) != 0
        else { return nil }
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        guard let descriptor = try? retrying("open", { path.withPlatformString { open($0, flags) } }) else {
            return nil
        }
        defer { close(descriptor) }
        return beginning(of: descriptor, count)
    }

    private static func beginning(of descriptor: CInt, _ count: Int) -> [UInt8]? {
        var information = stat()
        guard fstat(descriptor, &information) == 0, clinux_is_regular(information.st_mode) != 0 else {
            return nil
        }
        var bytes = [UInt8](repeating: 0, count: count)
        let result = pread(descriptor, &bytes, count, max(0, lseek(descriptor, 0, SEEK_CUR)))
        return result < 0 ? nil : Array(bytes.prefix(result))
    }

    private static func nameless(in directory: FilePath) throws(SystemFailure) -> any DiskFile {
        let descriptor = directory.withPlatformString { clinux_nameless_file($0) }
        if descriptor >= 0 { return PosixFile(descriptor: descriptor) }
        // Some file systems have no nameless files: use a temporary name.
        guard errno == EOPNOTSUPP || errno == EISDIR else {
            throw SystemFailure(Errno(rawValue: errno), "open(O_TMPFILE)")
        }
        let parent = try PosixDirectory(directory)
        let name = ".spool-\(String(UInt64.random(in: 0...UInt64.max), radix: 36))"
        let file = try parent.open(name, .create)
        try parent.remove(name)
        return file
    }

    /// Writes all of `bytes` to `descriptor` (`write`), through ``StandardStream/write(_:)`` for a standard
    /// stream.
    package static func write(_ bytes: [UInt8], to descriptor: CInt) throws(SystemFailure) {
        if let stream = StandardStream(rawValue: descriptor) { return try stream.write(bytes) }
        let failure: SystemFailure? = bytes.withUnsafeBytes { StandardStream.write($0, to: descriptor) }
        if let failure { throw failure }
    }
}
