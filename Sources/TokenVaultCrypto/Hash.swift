internal import CSodium

/// BLAKE2b (`crypto_generichash`), with and without a key.
package enum Hash {
    /// Returns the unkeyed digest of a part of `bytes`. `length` is 16 to 64 bytes.
    package static func digest(_ bytes: [UInt8], in range: Range<Int>? = nil, length: Int) -> [UInt8] {
        // libsodium selects its fastest implementation during initialization.
        _ = Sodium.isReady
        let range = (range ?? 0..<bytes.count).clamped(to: 0..<bytes.count)
        return [UInt8](unsafeUninitializedCapacity: length) { output, initialized in
            bytes.withUnsafeBufferPointer { input in
                _ = crypto_generichash(
                    output.octets, length,
                    UnsafeRawBufferPointer(input).octets + range.lowerBound, UInt64(range.count), nil, 0)
            }
            initialized = length
        }
    }

    /// 32 bytes as four integers, each little-endian.
    package typealias Words = (UInt64, UInt64, UInt64, UInt64)

    /// Returns the unkeyed digest of a part of `bytes`, 32 bytes long.
    package static func words(of bytes: [UInt8], in range: Range<Int>? = nil) -> Words {
        _ = Sodium.isReady
        return bytes.withUnsafeBytes { words(of: $0, in: range, key: nil) }
    }

    /// Returns the digest of a part of `bytes` keyed with `key`, 32 bytes long, or `nil` when the key was
    /// wiped.
    package static func words(
        of bytes: [UInt8], in range: Range<Int>? = nil, key: SymmetricKey
    ) -> Words? {
        key.withBytes { key in bytes.withUnsafeBytes { words(of: $0, in: range, key: key) } }
    }

    /// Returns the digest of a part of `bytes` keyed with `key`, 32 bytes long.
    package static func words(of bytes: [UInt8], in range: Range<Int>, with key: borrowing KeyUse) -> Words {
        let key = key.bytes
        return bytes.withUnsafeBytes { words(of: $0, in: range, key: key) }
    }

    private static func words(
        of bytes: UnsafeRawBufferPointer, in range: Range<Int>?, key: UnsafeRawBufferPointer?
    ) -> Words {
        let range = (range ?? 0..<bytes.count).clamped(to: 0..<bytes.count)
        var words: Words = (0, 0, 0, 0)
        withUnsafeMutableBytes(of: &words) { output in
            _ = crypto_generichash(
                output.octets, output.count, bytes.octets + range.lowerBound, UInt64(range.count),
                key?.octets, key?.count ?? 0)
        }
        return (
            UInt64(littleEndian: words.0), UInt64(littleEndian: words.1), UInt64(littleEndian: words.2),
            UInt64(littleEndian: words.3)
        )
    }

    /// Returns the digest of `bytes` keyed with `key`, 16 bytes long, as two little-endian integers. Returns
    /// `nil` when the key was wiped.
    package static func pair(of bytes: [UInt8], key: SymmetricKey) -> (UInt64, UInt64)? {
        key.withBytes { key in bytes.withUnsafeBytes { pair(of: $0, key: key) } }
    }

    /// Returns the unkeyed digest of a part of `bytes`, 16 bytes long, as two little-endian integers.
    package static func pair(of bytes: [UInt8], in range: Range<Int>) -> (UInt64, UInt64) {
        _ = Sodium.isReady
        let range = range.clamped(to: 0..<bytes.count)
        return bytes.withUnsafeBytes { pair(of: UnsafeRawBufferPointer(rebasing: $0[range]), key: nil) }
    }

    private static func pair(
        of bytes: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer?
    ) -> (UInt64, UInt64) {
        var pair: (UInt64, UInt64) = (0, 0)
        withUnsafeMutableBytes(of: &pair) { output in
            _ = crypto_generichash(
                output.octets, output.count, bytes.octets, UInt64(bytes.count), key?.octets, key?.count ?? 0)
        }
        return (UInt64(littleEndian: pair.0), UInt64(littleEndian: pair.1))
    }

    /// Returns whether the 16 bytes at `place` of `bytes` are the unkeyed digest of a part of them. Not for
    /// secrets: the comparison is not in constant time.
    package static func isChecksum(at place: Int, of bytes: [UInt8], in range: Range<Int>) -> Bool {
        guard place >= 0, place + 16 <= bytes.count, range.lowerBound >= 0, range.upperBound <= bytes.count
        else { return false }
        _ = Sodium.isReady
        return bytes.withUnsafeBytes { bytes in
            var computed: (UInt64, UInt64) = (0, 0)
            withUnsafeMutableBytes(of: &computed) { output in
                _ = crypto_generichash(
                    output.octets, output.count, bytes.octets + range.lowerBound, UInt64(range.count), nil, 0)
            }
            return bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self) == computed.0
                && bytes.loadUnaligned(fromByteOffset: place + 8, as: UInt64.self) == computed.1
        }
    }

    /// Returns the digest of a part of `bytes` keyed with `key`, or `nil` when the key was wiped.
    package static func keyed(
        _ bytes: [UInt8], in range: Range<Int>? = nil, key: SymmetricKey, length: Int
    ) -> [UInt8]? {
        let range = (range ?? 0..<bytes.count).clamped(to: 0..<bytes.count)
        return key.withBytes { key in
            [UInt8](unsafeUninitializedCapacity: length) { output, initialized in
                bytes.withUnsafeBufferPointer { input in
                    _ = crypto_generichash(
                        output.octets, length, UnsafeRawBufferPointer(input).octets + range.lowerBound,
                        UInt64(range.count), key.octets, key.count)
                }
                initialized = length
            }
        }
    }

    /// Derives a key from `key`: BLAKE2b-256 keyed with it, over a label and parts. Each is preceded by its
    /// length in eight bytes, so that no two lists give the same input. The input is assembled in wiped
    /// memory, because libsodium's streaming state has no Swift type.
    package static func derive(
        from key: SymmetricKey, label: String, parts: [[UInt8]] = [], secrets: [SymmetricKey] = []
    ) throws(CryptoError) -> SymmetricKey {
        let parts = [Array(label.utf8)] + parts
        let size = parts.reduce(0) { $0 + 8 + $1.count } + secrets.count * (8 + SymmetricKey.length)
        var complete = true
        let input = SecretBytes(capacity: size) { target in
            var position = 0
            func append(_ bytes: UnsafeRawBufferPointer) {
                withUnsafeBytes(of: UInt64(bytes.count).littleEndian) { length in
                    target[position..<position + 8].copyBytes(from: length)
                }
                target[position + 8..<position + 8 + bytes.count].copyBytes(from: bytes)
                position += 8 + bytes.count
            }
            for part in parts { part.withUnsafeBytes { append($0) } }
            for secret in secrets where secret.withBytes({ append($0) }) == nil { complete = false }
            return position
        }
        guard complete else { throw .unavailable }
        return try SymmetricKey { (target) throws(CryptoError) in
            let derived: Void? = key.withBytes { key in
                input.withUnsafeBytes { input in
                    _ = crypto_generichash(
                        target.octets, SymmetricKey.length, input.octets, UInt64(input.count),
                        key.octets, key.count)
                }
            }
            guard derived != nil else { throw .unavailable }
        }
    }

    /// Makes a key from a secret that is already hard to guess (the contents of a key file). The key is
    /// BLAKE2b-256 over the label, the parts and the secret, each preceded by its length.
    package static func key(
        of secret: SecretBytes, label: String, parts: [[UInt8]]
    ) throws(CryptoError) -> SymmetricKey {
        guard Sodium.isReady else { throw .unavailable }
        var prefix: [UInt8] = []
        for part in [Array(label.utf8)] + parts {
            prefix += withUnsafeBytes(of: UInt64(part.count).littleEndian) { Array($0) }
            prefix += part
        }
        prefix += withUnsafeBytes(of: UInt64(secret.count).littleEndian) { Array($0) }
        let input = SecretBytes(capacity: prefix.count + secret.count) { target in
            target.copyBytes(from: prefix)
            secret.withUnsafeBytes {
                UnsafeMutableRawBufferPointer(rebasing: target[prefix.count...]).copyBytes(from: $0)
            }
            return target.count
        }
        return try SymmetricKey { (target) throws(CryptoError) in
            input.withUnsafeBytes { input in
                _ = crypto_generichash(
                    target.octets, SymmetricKey.length, input.octets, UInt64(input.count), nil, 0)
            }
        }
    }
}
