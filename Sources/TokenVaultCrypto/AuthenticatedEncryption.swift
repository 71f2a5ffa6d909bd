internal import CSodium

/// XChaCha20-Poly1305-IETF with a fresh random nonce for every seal
/// (`crypto_aead_xchacha20poly1305_ietf_encrypt`). Sealed bytes are nonce ‖ ciphertext ‖ tag.
package enum AuthenticatedEncryption {
    /// The number of bytes that sealing adds: a 24-byte nonce before and a 16-byte tag behind.
    package static let overhead = 24 + 16
    private static let nonceLength = 24

    /// Seals `plaintext` under `key`, bound to `associatedData`. Returns `nil` when the key was wiped.
    package static func seal(
        _ plaintext: UnsafeRawBufferPointer, key: SymmetricKey, associatedData: [UInt8]
    ) -> [UInt8]? {
        key.withBytes { key in
            let total = plaintext.count + overhead
            return [UInt8](unsafeUninitializedCapacity: total) { buffer, initialized in
                guard let base = buffer.baseAddress else { return }
                randombytes_buf(base, nonceLength)
                crypto_aead_xchacha20poly1305_ietf_encrypt(
                    base + nonceLength, nil,
                    plaintext.octets, UInt64(plaintext.count),
                    associatedData, UInt64(associatedData.count),
                    nil, base, key.octets)
                initialized = total
            }
        }
    }

    /// Seals secret bytes.
    package static func seal(
        _ plaintext: SecretBytes, key: SymmetricKey, associatedData: [UInt8]
    ) -> [UInt8]? {
        plaintext.withUnsafeBytes { seal($0, key: key, associatedData: associatedData) }
    }

    /// Seals bytes that are not secret after this call.
    package static func seal(
        _ plaintext: [UInt8], key: SymmetricKey, associatedData: [UInt8]
    ) -> [UInt8]? {
        plaintext.withUnsafeBytes { seal($0, key: key, associatedData: associatedData) }
    }

    /// The result of opening.
    package enum Opened<Plaintext> {
        case plaintext(Plaintext)
        /// The bytes, the associated data or the key differ from those of the seal.
        case forged
        /// The key was wiped: its holder locked meanwhile.
        case wiped
    }

    /// Opens the sealed bytes at `range` of `bytes` into wiped memory.
    package static func open(
        _ bytes: [UInt8], at range: Range<Int>, key: SymmetricKey, associatedData: [UInt8]
    ) -> Opened<SecretBytes> {
        guard range.lowerBound >= 0, range.upperBound <= bytes.count, range.count >= overhead else {
            return .forged
        }
        let result: SecretBytes?? = key.withBytes { key in
            var authentic = false
            let plaintext = SecretBytes(capacity: range.count - overhead) { target in
                authentic = bytes.withUnsafeBytes { source in
                    decrypt(
                        UnsafeRawBufferPointer(rebasing: source[range]), into: target.octets,
                        key: key, associatedData: associatedData)
                }
                return authentic ? target.count : 0
            }
            return authentic ? plaintext : nil
        }
        switch result {
        case .none: return .wiped
        case .some(.none): return .forged
        case .some(.some(let plaintext)): return .plaintext(plaintext)
        }
    }

    /// Opens the sealed bytes at `range` of `bytes` into the front of `target`. Returns false when the target
    /// is too small or the bytes do not authenticate.
    static func open(
        _ bytes: [UInt8], at range: Range<Int>, into target: UnsafeMutableRawBufferPointer,
        key: UnsafeRawBufferPointer, associatedData: [UInt8]
    ) -> Bool {
        guard range.lowerBound >= 0, range.upperBound <= bytes.count, range.count >= overhead,
            target.count >= range.count - overhead
        else { return false }
        return bytes.withUnsafeBytes { source in
            decrypt(
                UnsafeRawBufferPointer(rebasing: source[range]), into: target.octets, key: key,
                associatedData: associatedData)
        }
    }

    /// Opens sealed bytes whose plaintext is not secret from holders of the log key (frame headers).
    package static func openPublic(
        _ bytes: [UInt8], at range: Range<Int>, key: SymmetricKey, associatedData: [UInt8]
    ) -> Opened<[UInt8]> {
        guard range.lowerBound >= 0, range.upperBound <= bytes.count, range.count >= overhead else {
            return .forged
        }
        let length = range.count - overhead
        let result: [UInt8]?? = key.withBytes { key in
            var authentic = false
            let plaintext = [UInt8](unsafeUninitializedCapacity: length) { target, initialized in
                authentic = bytes.withUnsafeBytes { source in
                    decrypt(
                        UnsafeRawBufferPointer(rebasing: source[range]),
                        into: target.octets,
                        key: key, associatedData: associatedData)
                }
                initialized = authentic ? length : 0
            }
            return authentic ? plaintext : nil
        }
        switch result {
        case .none: return .wiped
        case .some(.none): return .forged
        case .some(.some(let plaintext)): return .plaintext(plaintext)
        }
    }

    private static func decrypt(
        _ sealed: UnsafeRawBufferPointer, into target: UnsafeMutablePointer<UInt8>,
        key: UnsafeRawBufferPointer, associatedData: [UInt8]
    ) -> Bool {
        let base = sealed.octets
        return crypto_aead_xchacha20poly1305_ietf_decrypt(
            target, nil, nil,
            base + nonceLength, UInt64(sealed.count - nonceLength),
            associatedData, UInt64(associatedData.count),
            base, key.octets) == 0
    }
}
