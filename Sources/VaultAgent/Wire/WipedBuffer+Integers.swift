package import TokenVaultPlatform

// Defined in this module, so that the compiler can specialize these for each integer type. In the buffer's
// module the type would be determined at run time, for every integer of every frame.
extension WipedBuffer {
    /// Appends an integer of up to 64 bits, little-endian.
    package func append(_ value: some FixedWidthInteger & UnsignedInteger) {
        append(UInt64(value), width: value.bitWidth / 8)
    }

    /// Overwrites the bytes at `offset` with an integer of up to 64 bits, if they are all within the buffer.
    package func replace(at offset: Int, with value: some FixedWidthInteger & UnsignedInteger) {
        replace(at: offset, with: UInt64(value), width: value.bitWidth / 8)
    }

    /// Returns the little-endian integer of up to 64 bits at `offset`.
    package func integer<Value: FixedWidthInteger & UnsignedInteger>(at offset: Int, as type: Value.Type)
        -> Value?
    {
        integer(at: offset, width: Value.bitWidth / 8).map { Value(truncatingIfNeeded: $0) }
    }
}
