package import TokenVaultPlatform

// Here, and not where the buffer is: in another module the compiler leaves it to the running program to find out what kind of
// integer it is, for each one of each frame.
extension WipedBuffer {
    /// Adds an integer of 64 bits at most, little-endian.
    package func append(_ value: some FixedWidthInteger & UnsignedInteger) {
        append(UInt64(value), width: value.bitWidth / 8)
    }

    /// Writes an integer of 64 bits at most over what is at `offset`, if all of it is there.
    package func replace(at offset: Int, with value: some FixedWidthInteger & UnsignedInteger) {
        replace(at: offset, with: UInt64(value), width: value.bitWidth / 8)
    }

    /// The little-endian integer of 64 bits at most at `offset`.
    package func integer<Value: FixedWidthInteger & UnsignedInteger>(at offset: Int, as type: Value.Type)
        -> Value?
    {
        integer(at: offset, width: Value.bitWidth / 8).map { Value(truncatingIfNeeded: $0) }
    }
}
