import Glibc
import Synchronization

/// Sixteen random bytes that nothing in the process holds in clear until ``fill(_:)`` writes them.
///
/// The bytes are kept under a mask. A search finds the places where they were written, and not what the
/// search itself needs.
struct Marker {
    static let length = 16
    private let masked: [UInt8]
    private let mask: [UInt8]

    init() {
        mask = (0..<Self.length).map { _ in UInt8.random(in: .min ... .max) }
        // The first byte is not zero, because memory is full of zeros.
        masked = mask.enumerated().map { index, byte in byte ^ .random(in: (index == 0 ? 1 : 0)...0xff) }
    }

    /// Writes the bytes, as often as they fit.
    func fill(_ target: UnsafeMutableRawBufferPointer) {
        for index in target.indices {
            target[index] = masked[index % Self.length] ^ mask[index % Self.length]
        }
    }

    /// One search at a time: the buffer of another would hold copies of what this one looks for.
    private static let oneAtATime = Mutex(())

    /// In how many places of the process's writable memory the bytes are.
    func occurrences() throws -> Int { try Self.oneAtATime.withLock { _ in try search() } }

    private func search() throws -> Int {
        let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        guard memory >= 0 else { throw ScanFailure() }
        defer { close(memory) }
        // The bytes to look for are at the end of the buffer. The search leaves the buffer out and wipes it.
        let chunk = 4 << 20
        let size = chunk + Self.length
        guard let buffer = malloc(size) else { throw ScanFailure() }
        let needle = UnsafeMutableRawBufferPointer(start: buffer + chunk, count: Self.length)
        defer {
            // Not memset: the optimizer removes a write to memory that is freed next.
            explicit_bzero(buffer, size)
            free(buffer)
        }
        let own = UInt(bitPattern: buffer)..<UInt(bitPattern: buffer) + UInt(size)
        var found = 0
        for range in try writableRanges() {
            var start = range.lowerBound
            while start < range.upperBound {
                let count = pread(memory, buffer, min(chunk, Int(range.upperBound - start)), off_t(start))
                guard count >= Self.length else { break }
                fill(needle)
                var position = 0
                while let match = memchr(buffer + position, Int32(needle[0]), count - position) {
                    let offset = match - buffer
                    guard count - offset >= Self.length else { break }
                    let isOwn = own.contains(start + UInt(offset))
                    if !isOwn, memcmp(match, buffer + chunk, Self.length) == 0 { found += 1 }
                    position = offset + 1
                }
                // The pieces overlap, so that the search finds bytes across their border.
                start += UInt(count < chunk ? count : chunk - Self.length + 1)
            }
        }
        return found
    }

    struct ScanFailure: Error {}

    private func writableRanges() throws -> [Range<UInt>] {
        guard let maps = fopen("/proc/self/maps", "r") else { throw ScanFailure() }
        defer { fclose(maps) }
        var line = [CChar](repeating: 0, count: 4096)
        var ranges: [Range<UInt>] = []
        while fgets(&line, Int32(line.count), maps) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            let fields = text.split(separator: " ", omittingEmptySubsequences: true)
            guard fields.count > 1, fields[1].hasPrefix("rw") else { continue }
            let ends = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            if ends.count == 2, ends[0] < ends[1] { ranges.append(ends[0]..<ends[1]) }
        }
        return ranges
    }
}
