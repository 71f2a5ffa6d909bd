internal import CSodium

/// Fresh random nonces for many seals. Several are fetched from the system at a time, because each fetch
/// costs about as much as sealing. No nonce is used twice, and none is kept for later users.
package struct Nonces: ~Copyable {
    static let length = 24
    // libsodium fetches 256 bytes at a time from the system.
    private static let mostAtATime = 32

    private var bytes: [UInt8] = []
    private var position = 0
    private var expected: Int

    /// Creates nonces for about this many seals.
    package init(for seals: Int) { expected = seals }

    /// Announces about this many further seals.
    package mutating func expect(_ seals: Int) { expected = seals }

    /// Writes an unused nonce to `target`, which must have room for it.
    mutating func give(to target: UnsafeMutableRawBufferPointer) {
        if position == bytes.count { refill() }
        bytes.withUnsafeBytes { source in
            target.copyMemory(
                from: UnsafeRawBufferPointer(rebasing: source[position..<position + Self.length]))
        }
        position += Self.length
    }

    /// Returns a random number.
    package mutating func number() -> UInt64 {
        var number: UInt64 = 0
        if position == bytes.count { refill() }
        for byte in bytes[position..<position + 8] { number = number << 8 | UInt64(byte) }
        position += Self.length
        return number
    }

    private mutating func refill() {
        let count = min(max(expected, 1), Self.mostAtATime)
        expected -= count
        bytes = Random.bytes(count * Self.length)
        position = 0
    }
}
