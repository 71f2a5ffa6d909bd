internal import CSodium

/// Memory for one plaintext after another, wiped at its end.
package struct Scratch: ~Copyable {
    /// The plaintext, followed by older contents. Read it at once and never keep it: a copy that is kept
    /// while the next plaintext is opened is not wiped.
    package private(set) var bytes = [UInt8](repeating: 0, count: 4_096)
    /// The length of the plaintext, in bytes.
    package private(set) var count = 0

    /// Creates empty memory.
    package init() {}

    deinit { wipe() }

    /// Wipes the memory itself, even if other references to it exist.
    private func wipe() {
        bytes.withUnsafeBytes { sodium_memzero(UnsafeMutablePointer(mutating: $0.octets), $0.count) }
    }

    /// Opens the sealed bytes at `range` of `source` as
    /// ``AuthenticatedEncryption/open(_:at:key:associatedData:)`` does, over the previous contents. Returns
    /// false, without a plaintext, when the bytes do not authenticate.
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

    /// Whether the plaintext has the layout of ``SecretBytes/init(prefixingLengthOf:paddedTo:)``.
    package var isPrefixed: Bool {
        bytes.withUnsafeBytes {
            SecretBytes.prefixedRange(in: UnsafeRawBufferPointer(rebasing: $0[..<count])) != nil
        }
    }
}
