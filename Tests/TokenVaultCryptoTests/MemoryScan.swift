import Glibc

/// Sixteen random bytes that nothing in the process holds in clear until ``fill(_:)`` writes them.
///
/// What is kept are the bytes under a mask, so that a search finds the places where they were written
/// and not what the search itself needs.
struct Marker {
    static let length = 16
    private let masked: [UInt8]
    private let mask: [UInt8]

    init() {
        mask = (0..<Self.length).map { _ in UInt8.random(in: .min ... .max) }
        masked = (0..<Self.length).map { _ in UInt8.random(in: .min ... .max) }
    }

    /// Writes the bytes, as often as they fit.
    func fill(_ target: UnsafeMutableRawBufferPointer) {
        for index in target.indices {
            target[index] = masked[index % Self.length] ^ mask[index % Self.length]
        }
    }

    /// In how many places of the process's writable memory the bytes are.
    func occurrences() throws -> Int {
        let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        guard memory >= 0 else { throw ScanFailure() }
        defer { close(memory) }
        // Whole chunks overlap by the marker's length, and none is left in the buffer afterwards.
        let chunk = 1 << 20
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: chunk, alignment: 4096)
        defer { buffer.deallocate() }
        let own = UInt(bitPattern: buffer.baseAddress)..<UInt(bitPattern: buffer.baseAddress) + UInt(chunk)
        let words = buffer.bindMemory(to: UInt64.self)
        var found = 0
        for range in try writableRanges() {
            var start = range.lowerBound
            while start < range.upperBound {
                let wanted = min(chunk, Int(range.upperBound - start))
                let count = pread(memory, buffer.baseAddress, wanted, off_t(start))
                defer { for index in 0..<chunk / 8 { words[index] = 0 } }
                guard count >= Self.length else { break }
                for offset in 0...(count - Self.length)
                where !own.contains(start + UInt(offset)) && matches(buffer, at: offset) { found += 1 }
                guard count == wanted, count == chunk else { break }
                start += UInt(count - Self.length + 1)
            }
        }
        return found
    }

    struct ScanFailure: Error {}

    private func matches(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int) -> Bool {
        guard buffer[offset] ^ mask[0] == masked[0] else { return false }
        for index in 1..<Self.length where buffer[offset + index] ^ mask[index] != masked[index] {
            return false
        }
        return true
    }

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
