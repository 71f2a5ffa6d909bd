import Glibc

/// The limit of what a durable store can be: `pwrite` and `fdatasync` into a file whose bytes were all
/// written before.
public final class BareFile {
    private let descriptor: CInt
    private let length: Int
    private let bytes: [UInt8]
    private var offset = 0

    /// A new file at `path` with room for as many writes; after those it begins anew.
    public init(at path: String, bytesPerWrite: Int, writes: Int) throws {
        descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw POSIXFailure(number: errno) }
        length = bytesPerWrite * writes
        bytes = (0..<bytesPerWrite).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) }
        let zeros = [UInt8](repeating: 0, count: length)
        guard pwrite(descriptor, zeros, length, 0) == length, fsync(descriptor) == 0 else {
            throw POSIXFailure(number: errno)
        }
    }

    deinit { close(descriptor) }

    /// Writes the next bytes and makes them durable.
    public func write() throws {
        if offset + bytes.count > length { offset = 0 }
        guard pwrite(descriptor, bytes, bytes.count, off_t(offset)) == bytes.count,
            fdatasync(descriptor) == 0
        else { throw POSIXFailure(number: errno) }
        offset += bytes.count
    }
}
