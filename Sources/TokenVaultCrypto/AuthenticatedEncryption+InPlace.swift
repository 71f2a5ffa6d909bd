internal import CSodium

// What is sealed where it lies: the ciphertext takes the plaintext's place, so that nothing of it is left to wipe.
extension AuthenticatedEncryption {
    /// How many bytes of a seal come before the ciphertext.
    package static let front = Nonces.length

    /// Seals what lies in `range` of `bytes` between the room for a nonce and the room for a tag, as
    /// ``seal(_:key:associatedData:)-(UnsafeRawBufferPointer,_,_)`` does. False when the key was wiped; the bytes are
    /// then as they were. The range is inside and at least ``overhead`` long.
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

    /// Puts `secret` into `range` of `bytes`, as ``SecretBytes/init(prefixingLengthOf:paddedTo:)`` lays it out, and seals
    /// it there. False when the key was wiped: the secret is not put there then. The range is inside, has room for it and
    /// for ``overhead``, and holds zeros.
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
