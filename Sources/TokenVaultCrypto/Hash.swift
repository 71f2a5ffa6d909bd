internal import CSodium

/// BLAKE2b (`crypto_generichash`), with and without a key.
package enum Hash {
    /// The unkeyed digest of a part of `bytes`; `length` is 16 to 64 bytes.
    package static func digest(_ bytes: [UInt8], in range: Range<Int>? = nil, length: Int) -> [UInt8] {
        // libsodium picks its fastest implementation when it is initialized.
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

    /// Whether `digest`, or the part `place` of it, is the unkeyed digest of a part of `bytes`. No secret is
    /// compared: the time it takes tells where they differ.
    package static func isDigest(
        _ digest: [UInt8], at place: Range<Int>? = nil, of bytes: [UInt8], in range: Range<Int>
    ) -> Bool {
        _ = Sodium.isReady
        let place = place ?? 0..<digest.count
        guard (16...64).contains(place.count), place.upperBound <= digest.count,
            range.lowerBound >= 0, range.upperBound <= bytes.count
        else { return false }
        return withUnsafeTemporaryAllocation(byteCount: 64, alignment: 8) { computed in
            bytes.withUnsafeBytes { input in
                _ = crypto_generichash(
                    computed.octets, place.count, input.octets + range.lowerBound, UInt64(range.count), nil, 0
                )
            }
            return digest.withUnsafeBytes { expected in
                expected[place].elementsEqual(computed[..<place.count])
            }
        }
    }

    /// The digest of a part of `bytes` keyed with `key`; `nil` when the key was wiped.
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

    /// A key derived from `key`: BLAKE2b-256 keyed with it, over a label and parts, each preceded by its
    /// length in eight bytes so that no two lists give the same input. The input is assembled in wiped
    /// memory, since libsodium's streaming state has no Swift type.
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

    /// A key made of a secret that is already hard to guess (the contents of a key file): BLAKE2b-256
    /// over the label, the parts and the secret, each preceded by its length.
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
