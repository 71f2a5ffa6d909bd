internal import CSodium

// libsodium's parameters are not nullable, and an empty buffer has no address. It then gets one that is
// never read, since its length is zero.
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

/// Whether all of `bytes` are zero (`sodium_is_zero`).
package func isAllZero(_ bytes: [UInt8], in range: Range<Int>? = nil) -> Bool {
    let range = (range ?? 0..<bytes.count).clamped(to: 0..<bytes.count)
    return bytes.withUnsafeBytes { buffer in
        sodium_is_zero(buffer.octets + range.lowerBound, range.count) == 1
    }
}
