internal import CSodium

/// Random bytes of the system, through `randombytes_buf`.
package enum Random {
    /// Returns `count` unpredictable bytes.
    package static func bytes(_ count: Int) -> [UInt8] {
        _ = Sodium.isReady
        guard count > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            randombytes_buf(buffer.start, count)
            initialized = count
        }
    }
}
