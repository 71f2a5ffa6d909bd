internal import CSodium

/// Fresh random nonces for many seals: the system is asked for several at a time, since each time costs about as much as
/// sealing. No nonce is given twice, and none is kept for who comes later.
package struct Nonces: ~Copyable {
    static let length = 24
    // libsodium asks the system for 256 bytes at a time.
    private static let mostAtATime = 32

    private var bytes: [UInt8] = []
    private var position = 0
    private var expected: Int

    /// Nonces for about as many seals.
    package init(for seals: Int) { expected = seals }

    /// There will be about as many seals from here on.
    package mutating func expect(_ seals: Int) { expected = seals }

    /// Writes a nonce that was never given before to `target`, which has room for it.
    mutating func give(to target: UnsafeMutableRawBufferPointer) {
        if position == bytes.count { refill() }
        bytes.withUnsafeBytes { source in
            target.copyMemory(
                from: UnsafeRawBufferPointer(rebasing: source[position..<position + Self.length]))
        }
        position += Self.length
    }

    private mutating func refill() {
        let count = min(max(expected, 1), Self.mostAtATime)
        expected -= count
        bytes = Random.bytes(count * Self.length)
        position = 0
    }
}
