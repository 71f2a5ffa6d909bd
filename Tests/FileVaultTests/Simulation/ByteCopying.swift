/// Bulk copies: element by element they would dominate an unoptimized run.
extension [UInt8] {
    /// The bytes of `range`, as far as they exist.
    func bytes(in range: Range<Int>) -> [UInt8] {
        let range = range.clamped(to: 0..<count)
        return [UInt8](unsafeUninitializedCapacity: range.count) { target, initialized in
            withUnsafeBytes { source in
                UnsafeMutableRawBufferPointer(target).copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: source[range]))
            }
            initialized = range.count
        }
    }

    /// Puts `range` of `bytes` at `offset`; what lies between the end and `offset` becomes zero.
    mutating func put(_ bytes: [UInt8], in range: Range<Int>, at offset: Int) {
        guard !range.isEmpty else { return }
        if count < offset + range.count { setCount(offset + range.count) }
        withUnsafeMutableBytes { target in
            bytes.withUnsafeBytes { source in
                UnsafeMutableRawBufferPointer(rebasing: target[offset..<offset + range.count])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[range]))
            }
        }
    }

    /// Cuts, or lengthens with zeros.
    mutating func setCount(_ size: Int) {
        if size < count {
            removeLast(count - size)
        } else if size > count {
            append(contentsOf: [UInt8](repeating: 0, count: size - count))
        }
    }
}
