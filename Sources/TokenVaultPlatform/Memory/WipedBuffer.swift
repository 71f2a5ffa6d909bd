internal import Glibc

/// A growing buffer that is read at any position and wiped when it is released. Data from and for sockets is
/// kept here, because it may hold a secret. For one thread at a time.
///
/// Every read is checked against ``count``: a position outside gives `nil`, never a trap.
package final class WipedBuffer {
    private var storage: UnsafeMutableRawBufferPointer
    private let usual: Int
    /// The number of bytes in the buffer.
    package private(set) var count = 0

    /// Creates an empty buffer that keeps room for `capacity` bytes. It takes more room only while it needs
    /// more.
    package init(capacity: Int) {
        usual = max(capacity, 64)
        storage = .allocate(byteCount: usual, alignment: 16)
    }

    deinit {
        wipe(0..<count)
        storage.deallocate()
    }

    /// The current capacity, for tests: unneeded room is released.
    package var capacity: Int { storage.count }

    private func wipe(_ range: Range<Int>) {
        if !range.isEmpty, let start = storage.baseAddress {
            explicit_bzero(start + range.lowerBound, range.count)
        }
    }

    private func makeRoom(for more: Int) {
        let needed = count + more
        guard needed > storage.count else { return }
        let larger = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(needed, 2 * storage.count), alignment: 16)
        larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[0..<count]))
        wipe(0..<count)
        storage.deallocate()
        storage = larger
    }

    // MARK: - Writing

    /// Adds the `width` lowest bytes of an integer, little-endian; at most 8.
    package func append(_ value: UInt64, width: Int) {
        withUnsafeBytes(of: value.littleEndian) { append(UnsafeRawBufferPointer(rebasing: $0[..<width])) }
    }

    /// Adds the UTF-8 bytes of `text`.
    package func append(utf8 text: String) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    /// Adds bytes.
    package func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }

    /// Adds bytes.
    package func append(_ bytes: RawSpan) { bytes.withUnsafeBytes { append($0) } }

    private func append(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        makeRoom(for: bytes.count)
        UnsafeMutableRawBufferPointer(rebasing: storage[count..<count + bytes.count]).copyMemory(from: bytes)
        count += bytes.count
    }

    /// Replaces the bytes at `offset` by the `width` lowest bytes of an integer, little-endian, if all of
    /// them are in the buffer.
    package func replace(at offset: Int, with value: UInt64, width: Int) {
        guard offset >= 0, offset <= count - width else { return }
        withUnsafeBytes(of: value.littleEndian) {
            UnsafeMutableRawBufferPointer(rebasing: storage[offset..<offset + width])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<width]))
        }
    }

    /// Removes and wipes all but the first `length` bytes.
    package func truncate(to length: Int) {
        guard length >= 0, length < count else { return }
        wipe(length..<count)
        count = length
    }

    /// Removes and wipes the first `length` bytes, and moves the others to the front.
    package func removeFirst(_ length: Int) {
        guard length > 0, length < count else {
            if length >= count { removeAll() }
            return
        }
        if let start = storage.baseAddress { memmove(start, start + length, count - length) }
        truncate(to: count - length)
    }

    /// Removes and wipes everything, and releases memory above the initial capacity.
    package func removeAll() {
        truncate(to: 0)
        guard storage.count > usual else { return }
        storage.deallocate()
        storage = .allocate(byteCount: usual, alignment: 16)
    }

    // MARK: - Reading

    /// Returns the little-endian integer of `width` bytes at `offset`; at most 8.
    package func integer(at offset: Int, width: Int) -> UInt64? {
        guard offset >= 0, offset <= count - width else { return nil }
        var value: UInt64 = 0
        withUnsafeMutableBytes(of: &value) {
            $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[offset..<offset + width]))
        }
        return UInt64(littleEndian: value)
    }

    /// Calls `body` with the bytes in `range`, which are valid only during the call.
    package func withBytes<Result>(in range: Range<Int>, _ body: (RawSpan) -> Result) -> Result? {
        guard range.lowerBound >= 0, range.upperBound <= count else { return nil }
        return body(RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: storage[range])))
    }

    /// Returns whether the bytes in `range` equal `bytes`.
    package func holds(_ bytes: [UInt8], in range: Range<Int>) -> Bool {
        withBytes(in: range) { span in span.withUnsafeBytes { $0.elementsEqual(bytes) } } ?? false
    }

    /// Returns a copy of the bytes in `range`, which is not wiped.
    package func array(in range: Range<Int>) -> [UInt8]? {
        withBytes(in: range) { span in span.withUnsafeBytes { Array($0) } }
    }

    /// Returns the text in `range`, or `nil` also when it is not UTF-8.
    package func text(in range: Range<Int>) -> String? {
        withBytes(in: range) { span in
            span.withUnsafeBytes { String(validating: $0, as: UTF8.self) }
        } ?? nil
    }

    // MARK: - Sockets

    /// Adds the data of one `recv(2)`, until there are at most `limit` bytes. Returns 0 at the end of the
    /// stream. The buffer grows with received data, not with announced lengths.
    package func receive(from socket: UnixSocket, upTo limit: Int) throws(SystemFailure) -> Int {
        let received = try socket.receive(into: room(upTo: limit))
        count += received
        return received
    }

    /// Receives in the same way without sleeping. Returns `nil` without data. See
    /// ``UnixSocket/receiveSoon(into:)``.
    package func receiveSoon(from socket: UnixSocket, upTo limit: Int) throws(SystemFailure) -> Int? {
        let received = try socket.receiveSoon(into: room(upTo: limit))
        count += received ?? 0
        return received
    }

    private func room(upTo limit: Int) -> UnsafeMutableRawBufferPointer {
        if count == storage.count { makeRoom(for: 1) }
        let wanted = max(0, min(storage.count, limit) - count)
        return UnsafeMutableRawBufferPointer(rebasing: storage[count..<count + wanted])
    }

    /// Sends everything and removes it, also when sending fails. See ``UnixSocket/send(_:until:)``.
    package func send(to socket: UnixSocket, until deadline: Deadline) throws(SystemFailure) {
        defer { removeAll() }
        try socket.send(UnsafeRawBufferPointer(rebasing: storage[0..<count]), until: deadline)
    }
}
