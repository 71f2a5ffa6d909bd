internal import CSodium

/// Memory for plaintexts that are looked at one after the other, wiped when the last reference goes. For one thread.
package final class Scratch {
    private var storage = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 16)
    private var count = 0

    /// Memory that holds nothing.
    package init() {}

    deinit { free() }

    private func free() {
        sodium_memzero(storage.start, storage.count)
        storage.deallocate()
    }

    /// Opens sealed bytes as ``AuthenticatedEncryption/open(_:at:key:associatedData:)`` does; what was here before is
    /// overwritten.
    package func open(
        _ bytes: [UInt8], at range: Range<Int>, key: SymmetricKey, associatedData: [UInt8]
    ) -> AuthenticatedEncryption.Opened<Void> {
        count = 0
        let length = range.count - AuthenticatedEncryption.overhead
        if length > storage.count {
            free()
            storage = .allocate(byteCount: length, alignment: 16)
        }
        let opened = AuthenticatedEncryption.open(
            bytes, at: range, into: storage, key: key, associatedData: associatedData)
        if case .plaintext = opened { count = length }
        return opened
    }

    /// The plaintext as an ordinary array. For what is not secret in itself.
    package func array() -> [UInt8] { Array(storage[..<count]) }

    /// Whether the plaintext is what ``SecretBytes/init(prefixingLengthOf:paddedTo:)`` makes.
    package var isPrefixed: Bool {
        SecretBytes.prefixedRange(in: UnsafeRawBufferPointer(rebasing: storage[..<count])) != nil
    }
}
