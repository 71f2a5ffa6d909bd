internal import CSodium

// Sealing in place: the ciphertext takes the plaintext's place, so that no plaintext is left to wipe.
extension AuthenticatedEncryption {
    /// The number of bytes of a seal before the ciphertext.
    package static let front = Nonces.length

    /// Seals in place the plaintext in `range` of `bytes`, between the room for a nonce and the room for a
    /// tag, as ``seal(_:key:associatedData:)-(UnsafeRawBufferPointer,_,_)`` does. Returns false when the key
    /// was wiped; the bytes are then unchanged. The range must be inside and at least ``overhead`` long.
    package static func seal(
        _ bytes: inout [UInt8], at range: Range<Int>, key: SymmetricKey, associatedData: [UInt8],
        nonces: inout Nonces
    ) -> Bool {
        let sealed: Void? = key.withBytes { key in
            bytes.withUnsafeMutableBytes {
                seal(UnsafeMutableRawBufferPointer(rebasing: $0[range]), key, associatedData, &nonces)
            }
        }
        return sealed != nil
    }

    /// Writes `secret` into `range` of `bytes`, laid out as by
    /// ``SecretBytes/init(prefixingLengthOf:paddedTo:)``, and seals it there. Returns false when the key was
    /// wiped; the secret is then not written. The range must be inside, hold zeros, and have room for the
    /// secret and ``overhead``.
    package static func seal(
        prefixingLengthOf secret: SecretBytes, into bytes: inout [UInt8], at range: Range<Int>,
        key: SymmetricKey, associatedData: [UInt8], nonces: inout Nonces
    ) -> Bool {
        let sealed: Void? = key.withBytes { key in
            bytes.withUnsafeMutableBytes { buffer in
                let target = UnsafeMutableRawBufferPointer(rebasing: buffer[range])
                secret.putPrefixed(
                    into: UnsafeMutableRawBufferPointer(rebasing: target[front..<range.count - tagLength]))
                seal(target, key, associatedData, &nonces)
            }
        }
        return sealed != nil
    }

    private static func seal(
        _ target: UnsafeMutableRawBufferPointer, _ key: UnsafeRawBufferPointer, _ associatedData: [UInt8],
        _ nonces: inout Nonces
    ) {
        precondition(target.count >= overhead)
        nonces.give(to: target)
        let ciphertext = target.octets + front
        crypto_aead_xchacha20poly1305_ietf_encrypt(
            ciphertext, nil, ciphertext, UInt64(target.count - overhead), associatedData,
            UInt64(associatedData.count), nil, target.octets, key.octets)
    }

    private static let tagLength = overhead - front
}
