internal import CSodium

// libsodium's parameters are not nullable, and an empty buffer has no address. It then gets this address,
// which is never read because the length is zero.
nonisolated(unsafe) private let nowhere = UnsafeMutableRawPointer.allocate(byteCount: 16, alignment: 16)

extension UnsafeRawBufferPointer {
    var octets: UnsafePointer<UInt8> {
        (baseAddress ?? UnsafeRawPointer(nowhere)).assumingMemoryBound(to: UInt8.self)
    }
}

extension UnsafeMutableRawBufferPointer {
    var octets: UnsafeMutablePointer<UInt8> {
        (baseAddress ?? nowhere).assumingMemoryBound(to: UInt8.self)
    }
    var start: UnsafeMutableRawPointer { baseAddress ?? nowhere }
}

extension UnsafeMutableBufferPointer<UInt8> {
    var octets: UnsafeMutablePointer<UInt8> { UnsafeMutableRawBufferPointer(self).octets }
    var start: UnsafeMutableRawPointer { UnsafeMutableRawBufferPointer(self).start }
}

/// Returns whether all of `bytes` are zero. Not for secrets: it returns early. Reads 64 bytes at a time,
/// because the zeros behind a log are checked at every opening of a vault (`sodium_is_zero` goes byte by
/// byte).
package func isAllZero(_ bytes: [UInt8], in range: Range<Int>? = nil) -> Bool {
    let range = (range ?? 0..<bytes.count).clamped(to: 0..<bytes.count)
    return bytes.withUnsafeBytes { buffer in
        var position = range.lowerBound
        while position + 64 <= range.upperBound {
            var bits: UInt64 = 0
            for word in 0..<8 {
                bits |= buffer.loadUnaligned(fromByteOffset: position + word * 8, as: UInt64.self)
            }
            if bits != 0 { return false }
            position += 64
        }
        while position < range.upperBound {
            if buffer[position] != 0 { return false }
            position += 1
        }
        return true
    }
}

/// Returns whether both have the same bytes. Not for secrets: it returns early. Reads eight bytes at a time
/// (the `==` of arrays goes byte by byte).
package func isSame(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    return left.withUnsafeBytes { left in
        right.withUnsafeBytes { right in
            var position = 0
            while position + 8 <= left.count {
                if left.loadUnaligned(fromByteOffset: position, as: UInt64.self)
                    != right.loadUnaligned(fromByteOffset: position, as: UInt64.self)
                {
                    return false
                }
                position += 8
            }
            return left[position...].elementsEqual(right[position...])
        }
    }
}
