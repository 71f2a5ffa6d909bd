import Glibc

/// Sixteen bytes that memory is searched for, kept under a mask: the search finds the places where they were
/// left and not what it needs itself.
struct Needle {
    static let length = 16
    /// What they are a part of.
    let name: String
    private let mask: [UInt8]
    private let masked: [UInt8]

    /// The first sixteen of `bytes` from `offset` on. What `malloc` writes into memory that was given back
    /// stands at its start: bytes from further on are found there still.
    init(_ name: String, _ bytes: UnsafeRawBufferPointer, from offset: Int) {
        self.name = name
        let mask = (0..<Self.length).map { _ in UInt8.random(in: .min ... .max) }
        masked = (0..<Self.length).map { bytes[offset + $0] ^ mask[$0] }
        self.mask = mask
    }

    /// Whether `other` is the same sixteen bytes.
    func isSame(as other: Needle) -> Bool {
        (0..<Self.length).allSatisfy { masked[$0] ^ mask[$0] == other.masked[$0] ^ other.mask[$0] }
    }

    /// Writes the bytes.
    func write(to target: UnsafeMutableRawPointer) {
        for index in 0..<Self.length {
            target.storeBytes(of: masked[index] ^ mask[index], toByteOffset: index, as: UInt8.self)
        }
    }
}

/// A search of all that this process can write. It reads the memory itself: the kernel has no way to pages
/// of `memfd_secret`, and would show nothing of them. Nothing else may run meanwhile.
struct MemorySearch {
    // A page of its own for what is looked for, left out of the search.
    private let page: UnsafeMutableRawPointer

    init() {
        page = mmap(nil, 4_096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    }

    /// Where `needle` is found: the names of the mappings.
    func places(of needle: Needle) -> [String] {
        let mappings = Self.mappings()
        var found: [String] = []
        needle.write(to: page)
        for (name, range) in mappings where !range.contains(UInt(bitPattern: page)) {
            var position = UnsafeMutableRawPointer(bitPattern: range.lowerBound)
            let end = UnsafeMutableRawPointer(bitPattern: range.upperBound)
            let first = Int32(page.load(as: UInt8.self))
            while let start = position, let end, end - start >= Needle.length,
                let match = memchr(start, first, end - start - Needle.length + 1)
            {
                if memcmp(match, page, Needle.length) == 0 { found.append(name) }
                position = match + 1
            }
        }
        explicit_bzero(page, Needle.length)
        return found
    }

    private static func mappings() -> [(name: String, range: Range<UInt>)] {
        guard let maps = fopen("/proc/self/maps", "r") else { return [] }
        defer { fclose(maps) }
        var found: [(String, Range<UInt>)] = []
        var line = [CChar](repeating: 0, count: 4_096)
        while fgets(&line, Int32(line.count), maps) != nil {
            let bytes = line.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }
            let fields = String(decoding: bytes, as: UTF8.self).split(separator: " ")
            let ends = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            guard fields[1].hasPrefix("rw"), ends.count == 2 else { continue }
            found.append((fields.count > 5 ? String(fields[5]) : "anonymous", ends[0]..<ends[1]))
        }
        return found
    }
}
