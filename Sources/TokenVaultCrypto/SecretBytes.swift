internal import CSodium
package import TokenVaultPlatform

/// Bytes that are wiped (`sodium_memzero`) when the last reference is released.
///
/// They live in ordinary memory. A guarded allocation costs 25 to 40 µs, and few fit under the limit on
/// locked memory. Guarded memory is therefore kept for long-lived keys (``SymmetricKey``).
@usableFromInline package final class SecretBytes: @unchecked Sendable {
    // Immutable after initialization, so sharing between threads is safe.
    @usableFromInline let storage: UnsafeMutableRawBufferPointer
    /// The owner of the memory that this is a part of; `nil` for memory of its own.
    private let owner: SecretBytes?

    /// The number of bytes.
    @usableFromInline package let count: Int

    /// Creates the bytes that `fill` writes into `capacity` zero bytes. `fill` returns the number of valid
    /// bytes. The rest stays allocated and zero, and is wiped as well.
    package init(capacity: Int, fill: (UnsafeMutableRawBufferPointer) -> Int) {
        let size = max(capacity, 1)
        storage = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
        owner = nil
        sodium_memzero(storage.start, size)
        let wanted = UnsafeMutableRawBufferPointer(rebasing: storage[0..<max(capacity, 0)])
        count = min(max(fill(wanted), 0), max(capacity, 0))
    }

    /// Creates a part of other bytes, which are wiped when their last part is released.
    private init(_ range: Range<Int>, of owner: SecretBytes) {
        storage = UnsafeMutableRawBufferPointer(rebasing: owner.storage[range])
        self.owner = owner
        count = range.count
    }

    package convenience init(copying bytes: some Sequence<UInt8>) {
        let copied: SecretBytes? = bytes.withContiguousStorageIfAvailable { source in
            SecretBytes(capacity: source.count) { target in
                target.copyMemory(from: UnsafeRawBufferPointer(source))
                return source.count
            }
        }
        if let copied {
            self.init(capacity: copied.count) { target in
                copied.withUnsafeBytes { target.copyMemory(from: $0) }
                return copied.count
            }
        } else {
            var array = Array(bytes)
            self.init(capacity: array.count) { target in
                target.copyBytes(from: array)
                return array.count
            }
            array.withUnsafeMutableBytes { sodium_memzero($0.start, $0.count) }
        }
    }

    deinit {
        guard owner == nil else { return }
        sodium_memzero(storage.start, storage.count)
        storage.deallocate()
    }

    /// Calls `body` with the bytes, which are valid only during the call. Do not keep the pointer.
    @inlinable package func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(rebasing: storage[0..<count]))
    }

    /// Calls `body` with the bytes as a span, which is valid only during the call.
    @inlinable package func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBytes { (buffer) throws(Failure) -> Result in
            try body(RawSpan(_unsafeBytes: buffer))
        }
    }

    /// Returns a part of the bytes, without a copy, or `nil` when the range is not inside.
    package func slice(_ range: Range<Int>) -> SecretBytes? {
        guard range.lowerBound >= 0, range.upperBound <= count else { return nil }
        return SecretBytes(range, of: self)
    }

    /// Returns an ordinary array of the bytes, for bytes that are not secret in themselves (names, padding,
    /// headers).
    package func array() -> [UInt8] { withUnsafeBytes { Array($0) } }

    /// Compares in constant time for equal lengths (`sodium_memcmp`).
    package func isEqual(to other: SecretBytes) -> Bool {
        guard count == other.count else { return false }
        if count == 0 { return true }
        return withUnsafeBytes { left in
            other.withUnsafeBytes { right in
                sodium_memcmp(left.octets, right.octets, left.count) == 0
            }
        }
    }
}

/// Compares two digests or tags in constant time (`sodium_memcmp`). Returns false for unequal lengths.
package func constantTimeEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    if left.isEmpty { return true }
    return left.withUnsafeBytes { left in
        right.withUnsafeBytes { right in
            sodium_memcmp(left.octets, right.octets, left.count) == 0
        }
    }
}

extension SecretBytes {
    /// Creates a copy of `bytes` behind their length in eight bytes, little-endian, and followed by zeros up
    /// to `capacity` bytes in all. There is no other copy in between.
    package convenience init(prefixingLengthOf bytes: SecretBytes, paddedTo capacity: Int) {
        let size = max(capacity, bytes.count + 8)
        self.init(capacity: size) { target in
            bytes.putPrefixed(into: target)
            return size
        }
    }

    /// Writes these bytes to the front of `target`, preceded by their length in eight bytes, little-endian.
    /// `target` must have room for them.
    func putPrefixed(into target: UnsafeMutableRawBufferPointer) {
        precondition(target.count >= 8 + count)
        target.storeBytes(of: UInt64(count).littleEndian, as: UInt64.self)
        withUnsafeBytes { source in
            UnsafeMutableRawBufferPointer(rebasing: target[8..<8 + source.count]).copyMemory(from: source)
        }
    }

    /// Creates `front`, which is not secret, followed by `bytes`.
    package convenience init(joining front: [UInt8], _ bytes: SecretBytes) {
        let size = front.count + bytes.count
        self.init(capacity: size) { target in
            target.copyBytes(from: front)
            bytes.withUnsafeBytes { source in
                UnsafeMutableRawBufferPointer(rebasing: target[front.count..<size]).copyBytes(from: source)
            }
            return size
        }
    }

    /// Returns the bytes given to ``init(prefixingLengthOf:paddedTo:)``, or `nil` when the length is out of
    /// range or the padding is not zero.
    package func unprefixed() -> SecretBytes? {
        withUnsafeBytes { Self.prefixedRange(in: $0) }.flatMap { slice($0) }
    }

    /// Returns the range of the bytes given to ``init(prefixingLengthOf:paddedTo:)``, or `nil` as
    /// ``unprefixed()``.
    static func prefixedRange(in bytes: UnsafeRawBufferPointer) -> Range<Int>? {
        guard bytes.count >= 8 else { return nil }
        let length = UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
        guard length <= UInt64(bytes.count - 8) else { return nil }
        let end = 8 + Int(length)
        guard bytes[end...].allSatisfy({ $0 == 0 }) else { return nil }
        return 8..<end
    }
}

extension SecretBytes {
    /// Creates a copy of a part of a buffer; `nil` when the part is not inside.
    package convenience init?(copying buffer: WipedBuffer, in range: Range<Int>) {
        guard range.lowerBound >= 0, range.upperBound <= buffer.count else { return nil }
        self.init(capacity: range.count) { target in
            _ = buffer.withBytes(in: range) { span in span.withUnsafeBytes { target.copyBytes(from: $0) } }
            return range.count
        }
    }
}
