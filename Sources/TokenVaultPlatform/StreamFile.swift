internal import CLinux
internal import Glibc
package import SystemPackage

/// Bytes that come or go as a stream, as files that can be read and written at any place.
package enum StreamFile {
    /// The file at `path`, following links, to be read. What is no regular file is read to its end into a
    /// file without a name in `directory`.
    package static func reading(
        _ path: FilePath, spoolingIn directory: FilePath
    ) throws(SystemFailure) -> any DiskFile {
        let descriptor = try retrying("open") {
            path.withPlatformString { open($0, O_RDONLY | O_CLOEXEC | O_NOCTTY) }
        }
        var information = stat()
        guard fstat(descriptor, &information) == 0 else {
            let reason = Errno(rawValue: errno)
            close(descriptor)
            throw SystemFailure(reason, "fstat")
        }
        if clinux_is_regular(information.st_mode) != 0 { return PosixFile(descriptor: descriptor) }
        defer { close(descriptor) }
        return try spooled(descriptor, in: directory)
    }

    /// What can be read from `descriptor`, up to its end, in a file without a name in `directory`.
    package static func spooled(
        _ descriptor: CInt, in directory: FilePath
    ) throws(SystemFailure) -> any DiskFile {
        let file = try nameless(in: directory)
        var offset = 0
        while true {
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
                if let failure = InputSource.wait(for: descriptor, nil) { throw failure }
                continue
            }
            try file.write(bytes, at: offset)
            offset += bytes.count
        }
    }

    private static func nameless(in directory: FilePath) throws(SystemFailure) -> any DiskFile {
        let descriptor = directory.withPlatformString { clinux_nameless_file($0) }
        if descriptor >= 0 { return PosixFile(descriptor: descriptor) }
        // Some file systems know no such files: a name for a moment.
        guard errno == EOPNOTSUPP || errno == EISDIR else {
            throw SystemFailure(Errno(rawValue: errno), "open(O_TMPFILE)")
        }
        let parent = try PosixDirectory(directory)
        let name = ".spool-\(String(UInt64.random(in: 0...UInt64.max), radix: 36))"
        let file = try parent.open(name, .create)
        try parent.remove(name)
        return file
    }

    /// Writes all of `bytes` to `descriptor` (`write`).
    package static func write(_ bytes: [UInt8], to descriptor: CInt) throws(SystemFailure) {
        let failure: SystemFailure? = bytes.withUnsafeBytes { StandardStream.write($0, to: descriptor) }
        if let failure { throw failure }
    }
}
