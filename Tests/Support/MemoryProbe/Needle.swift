import Glibc

/// How bytes may have been left.
enum Form: CaseIterable {
    case raw, hexadecimal, upperHexadecimal, utf16
    /// Of a text that begins up to two bytes before a group of three.
    case base64, base64ByOne, base64ByTwo
}

/// Sixteen bytes that memory is searched for, kept under a mask. The search finds the places where the bytes
/// were left, and not its own copy.
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

    /// The longest form.
    static let longestForm = 2 * length

    /// Writes the bytes in that form; how many bytes those are.
    @discardableResult
    func write(as form: Form = .raw, to target: UnsafeMutableRawPointer) -> Int {
        switch form {
        case .raw: write(to: target) { $0.append(byte($1)) }
        case .hexadecimal: write(to: target) { $0.append(hexadecimal: byte($1), letters: 0x57) }
        case .upperHexadecimal: write(to: target) { $0.append(hexadecimal: byte($1), letters: 0x37) }
        case .utf16:
            write(to: target) {
                $0.append(byte($1))
                $0.append(0)
            }
        case .base64: writeBase64(from: 0, to: target)
        case .base64ByOne: writeBase64(from: 1, to: target)
        case .base64ByTwo: writeBase64(from: 2, to: target)
        }
    }

    private func byte(_ index: Int) -> UInt8 { masked[index] ^ mask[index] }

    private struct Output {
        let target: UnsafeMutableRawPointer
        var count = 0

        mutating func append(_ byte: UInt8) {
            target.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
            count += 1
        }

        mutating func append(hexadecimal byte: UInt8, letters: UInt8) {
            for digit in [byte >> 4, byte & 15] { append(digit < 10 ? 0x30 + digit : letters + digit) }
        }

        mutating func append(base64 group: Int) {
            append(Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)[group & 63])
        }
    }

    private func write(to target: UnsafeMutableRawPointer, _ body: (inout Output, Int) -> Void) -> Int {
        var output = Output(target: target)
        for index in 0..<Self.length { body(&output, index) }
        return output.count
    }

    /// The groups of three bytes from `start` on, whole ones only.
    private func writeBase64(from start: Int, to target: UnsafeMutableRawPointer) -> Int {
        var output = Output(target: target)
        for index in stride(from: start, through: Self.length - 3, by: 3) {
            let group = Int(byte(index)) << 16 | Int(byte(index + 1)) << 8 | Int(byte(index + 2))
            for shift in [18, 12, 6, 0] { output.append(base64: group >> shift) }
        }
        return output.count
    }
}

/// A search of all that this process can write. It reads the memory itself: the kernel has no way to pages
/// of `memfd_secret`, and would show nothing of them. Nothing else may run meanwhile.
struct MemorySearch {
    // The needle has a page of its own, which the search leaves out.
    private let page: UnsafeMutableRawPointer

    init() {
        page = mmap(nil, 4_096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    }

    /// Where `needle` is found in that form: the names of the mappings.
    func places(of needle: Needle, as form: Form = .raw) -> [String] {
        let mappings = Self.mappings()
        var found: [String] = []
        let length = needle.write(as: form, to: page)
        for (name, range) in mappings where !range.contains(UInt(bitPattern: page)) {
            var position = UnsafeMutableRawPointer(bitPattern: range.lowerBound)
            let end = UnsafeMutableRawPointer(bitPattern: range.upperBound)
            let first = Int32(page.load(as: UInt8.self))
            while let start = position, let end, end - start >= length,
                let match = memchr(start, first, end - start - length + 1)
            {
                if memcmp(match, page, length) == 0 { found.append(name) }
                position = match + 1
            }
        }
        explicit_bzero(page, Needle.longestForm)
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
