internal import CLinux
internal import Glibc
package import SystemPackage

/// Whole small files: key files, passphrase files, device keys.
package enum SmallFile {
    /// The contents of a small file, with its attributes.
    package struct Contents {
        package let bytes: [UInt8]
        package let attributes: FileAttributes
    }

    /// Returns the bytes of the file at `path`, following links. Throws `EFBIG` above `limit` bytes. Pipes
    /// and other irregular files are read to their end.
    package static func read(_ path: FilePath, limit: Int) throws(SystemFailure) -> Contents {
        let descriptor = try retrying("open") { path.withPlatformString { open($0, O_RDONLY | O_CLOEXEC) } }
        defer { close(descriptor) }
        let attributes = try FileAttributes(of: descriptor)
        return Contents(bytes: try readAll(from: descriptor, limit: limit), attributes: attributes)
    }

    /// Returns the identity of the file at `path`, following links, or `nil` when there is none or it cannot
    /// be determined.
    package static func identity(of path: FilePath) -> FileIdentity? {
        try? FileAttributes(at: path).identity
    }

    /// Returns whether there is a regular file at `path`, following links. Opening a regular file never waits
    /// for another process.
    package static func isRegular(_ path: FilePath) -> Bool {
        (try? FileAttributes(at: path).kind) == .regular
    }

    /// Returns everything that can be read from `descriptor`. Throws `EFBIG` above `limit` bytes.
    package static func readAll(from descriptor: CInt, limit: Int) throws(SystemFailure) -> [UInt8] {
        var failure: SystemFailure?
        // One buffer of fixed size: growing would leave copies of a secret behind.
        var bytes = [UInt8](unsafeUninitializedCapacity: limit + 1) { buffer, initialized in
            while initialized < buffer.count {
                let result = Glibc.read(
                    descriptor, buffer.baseAddress.map { $0 + initialized }, buffer.count - initialized)
                if result > 0 {
                    initialized += result
                } else if result == 0 {
                    return
                } else if errno != EINTR {
                    failure = SystemFailure(Errno(rawValue: errno), "read")
                    return
                }
            }
        }
        if failure == nil, bytes.count > limit { failure = SystemFailure(.fileTooLarge, "read") }
        if let failure {
            wipe(&bytes)
            throw failure
        }
        return bytes
    }

    /// Wipes an array that held a secret. It must be the only reference, or a copy is wiped instead.
    package static func wipe(_ bytes: inout [UInt8]) {
        bytes.withUnsafeMutableBytes { buffer in
            if let base = buffer.baseAddress { explicit_bzero(base, buffer.count) }
        }
        bytes = []
    }
}
