internal import Glibc

/// Bytes that grow as they come, are read at any place, and are wiped when they are let go of. What goes through a
/// socket lies here, since it may hold a secret. For one thread at a time.
///
/// Every read is checked against ``count``: what is not there is `nil`, never a trap.
package final class WipedBuffer {
    private var storage: UnsafeMutableRawBufferPointer
    private let usual: Int
    /// How many bytes there are.
    package private(set) var count = 0

    /// An empty buffer that keeps room for `capacity` bytes and takes more for as long as it needs it.
    package init(capacity: Int) {
        usual = max(capacity, 64)
        storage = .allocate(byteCount: usual, alignment: 16)
    }

    deinit {
        wipe(0..<count)
        storage.deallocate()
    }

    /// The room there is now. For tests: what is not needed is given back.
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

    /// Adds the `width` lowest bytes of an integer, little-endian; 8 at most.
    package func append(_ value: UInt64, width: Int) {
        withUnsafeBytes(of: value.littleEndian) { append(UnsafeRawBufferPointer(rebasing: $0[..<width])) }
    }

    /// Adds the bytes of UTF-8.
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

    /// Writes the `width` lowest bytes of an integer, little-endian, over what is at `offset`, if all of it is there.
    package func replace(at offset: Int, with value: UInt64, width: Int) {
        guard offset >= 0, offset <= count - width else { return }
        withUnsafeBytes(of: value.littleEndian) {
            UnsafeMutableRawBufferPointer(rebasing: storage[offset..<offset + width])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<width]))
        }
    }

    /// Lets go of all but the first `length` bytes.
    package func truncate(to length: Int) {
        guard length >= 0, length < count else { return }
        wipe(length..<count)
        count = length
    }

    /// Lets go of the first `length` bytes; the others come to the front.
    package func removeFirst(_ length: Int) {
        guard length > 0, length < count else {
            if length >= count { removeAll() }
            return
        }
        if let start = storage.baseAddress { memmove(start, start + length, count - length) }
        truncate(to: count - length)
    }

    /// Lets go of everything, and of the memory that is not usual.
    package func removeAll() {
        truncate(to: 0)
        guard storage.count > usual else { return }
        storage.deallocate()
        storage = .allocate(byteCount: usual, alignment: 16)
    }

    // MARK: - Reading

    /// The little-endian integer of `width` bytes at `offset`; 8 at most.
    package func integer(at offset: Int, width: Int) -> UInt64? {
        guard offset >= 0, offset <= count - width else { return nil }
        var value: UInt64 = 0
        withUnsafeMutableBytes(of: &value) {
            $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[offset..<offset + width]))
        }
        return UInt64(littleEndian: value)
    }

    /// The bytes in `range`, for the length of the call.
    package func withBytes<Result>(in range: Range<Int>, _ body: (RawSpan) -> Result) -> Result? {
        guard range.lowerBound >= 0, range.upperBound <= count else { return nil }
        return body(RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: storage[range])))
    }

    /// Whether the bytes in `range` are these.
    package func holds(_ bytes: [UInt8], in range: Range<Int>) -> Bool {
        withBytes(in: range) { span in span.withUnsafeBytes { $0.elementsEqual(bytes) } } ?? false
    }

    /// A copy that nobody wipes of the bytes in `range`.
    package func array(in range: Range<Int>) -> [UInt8]? {
        withBytes(in: range) { span in span.withUnsafeBytes { Array($0) } }
    }

    /// The text in `range`; `nil` also when it is not UTF-8.
    package func text(in range: Range<Int>) -> String? {
        withBytes(in: range) { span in
            span.withUnsafeBytes { String(validating: $0, as: UTF8.self) }
        } ?? nil
    }

    // MARK: - Sockets

    /// Adds what one `recv(2)` gives, at most until there are `limit` bytes; 0 at the end of the stream. Room is made
    /// for what has come, not for what was announced.
    package func receive(from socket: UnixSocket, upTo limit: Int) throws(SystemFailure) -> Int {
        let received = try socket.receive(into: room(upTo: limit))
        count += received
        return received
    }

    /// The same without sleeping: `nil` when nothing comes. See ``UnixSocket/receiveSoon(into:)``.
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

    /// Sends everything and lets go of it, also when that fails. See ``UnixSocket/send(_:until:)``.
    package func send(to socket: UnixSocket, until deadline: Deadline) throws(SystemFailure) {
        defer { removeAll() }
        try socket.send(UnsafeRawBufferPointer(rebasing: storage[0..<count]), until: deadline)
    }
}
