internal import CSodium

/// Memory for plaintexts that are looked at one after the other, wiped at its end.
package struct Scratch: ~Copyable {
    /// The plaintext, and behind it what was here before. To be read at once and never kept: what keeps it while the
    /// next one is opened has a copy that nobody wipes.
    package private(set) var bytes = [UInt8](repeating: 0, count: 4_096)
    /// How long the plaintext is.
    package private(set) var count = 0

    /// Memory that holds nothing.
    package init() {}

    deinit { wipe() }

    /// Wipes the memory itself, whoever may still refer to it.
    private func wipe() {
        bytes.withUnsafeBytes { sodium_memzero(UnsafeMutablePointer(mutating: $0.octets), $0.count) }
    }

    /// Opens the sealed bytes at `range` of `source` as ``AuthenticatedEncryption/open(_:at:key:associatedData:)`` does;
    /// what was here before is overwritten. False when they do not authenticate; there is no plaintext then.
    package mutating func open(
        _ source: [UInt8], at range: Range<Int>, with key: borrowing KeyUse, associatedData: [UInt8]
    ) -> Bool {
        count = 0
        let length = range.count - AuthenticatedEncryption.overhead
        if length > bytes.count {
            wipe()
            bytes = [UInt8](repeating: 0, count: length)
        }
        let keyBytes = key.bytes
        let isAuthentic = bytes.withUnsafeMutableBytes { target in
            AuthenticatedEncryption.open(
                source, at: range, into: target, key: keyBytes, associatedData: associatedData)
        }
        if isAuthentic { count = length }
        return isAuthentic
    }

    /// Whether the plaintext is what ``SecretBytes/init(prefixingLengthOf:paddedTo:)`` makes.
    package var isPrefixed: Bool {
        bytes.withUnsafeBytes {
            SecretBytes.prefixedRange(in: UnsafeRawBufferPointer(rebasing: $0[..<count])) != nil
        }
    }
}
