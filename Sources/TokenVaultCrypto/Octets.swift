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
