import Testing
import TokenVaultCrypto

/// Answers that others published or computed: what this package writes, others can read.
@Suite struct KnownAnswerTests {
    /// draft-irtf-cfrg-xchacha-03, A.3.1.
    private enum XChaCha {
        static let plaintext =
            "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
            + "sunscreen would be it."
        static let associatedData = bytes("50515253c0c1c2c3c4c5c6c7")
        static let key = Array(UInt8(0x80)...0x9f)
        static let nonce = Array(UInt8(0x40)...0x57)
        static let ciphertext = bytes(
            """
            bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb
            731c7f1b0b4aa6440bf3a82f4eda7e39ae64c6708c54c216cb96b72e1213b452
            2f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff9
            21f9664c97637da9768812f615c68b13b52e
            """)
        static let tag = bytes("c0875924c1c7987947deafd8780acf49")
        static let sealed = nonce + ciphertext + tag
    }

    private func opened(_ sealed: [UInt8], _ associatedData: [UInt8]) throws -> [UInt8]? {
        let key = try SymmetricKey(copying: SecretBytes(copying: XChaCha.key))
        let answer = AuthenticatedEncryption.open(
            sealed, at: 0..<sealed.count, key: key, associatedData: associatedData)
        if case .plaintext(let plaintext) = answer { return plaintext.array() }
        return nil
    }

    @Test func xChaCha20Poly1305OpensThePublishedVector() throws {
        #expect(try opened(XChaCha.sealed, XChaCha.associatedData) == Array(XChaCha.plaintext.utf8))
        #expect(try opened(XChaCha.sealed, XChaCha.associatedData + [0]) == nil)
        #expect(try opened(XChaCha.sealed, []) == nil)
    }

    @Test func xChaCha20Poly1305RefusesEveryFlippedBit() throws {
        for bit in 0..<XChaCha.sealed.count * 8 {
            var flipped = XChaCha.sealed
            flipped[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(try opened(flipped, XChaCha.associatedData) == nil, "bit \(bit)")
        }
    }

    @Test func xChaCha20Poly1305RefusesEveryTruncation() throws {
        for length in 0..<XChaCha.sealed.count {
            let cut = Array(XChaCha.sealed.prefix(length))
            #expect(try opened(cut, XChaCha.associatedData) == nil, "\(length) bytes")
        }
    }

    /// RFC 7693, appendix A.
    @Test func blake2bOfThePublishedVector() {
        let expected = bytes(
            """
            ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1
            7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923
            """)
        let text = Array("abc".utf8)
        #expect(Hash.digest(text, length: 64) == expected)
        #expect(Hash.digest(Array("<abc>".utf8), in: 1..<4, length: 64) == expected)
    }

    /// Computed with Python's hashlib, which has the BLAKE2 authors' reference implementation.
    @Test func keyedBLAKE2bAgreesWithTheReferenceImplementation() throws {
        let key = try SymmetricKey(copying: SecretBytes(copying: Array(UInt8(0)..<32)))
        #expect(
            Hash.keyed([], key: key, length: 32)
                == bytes("4e51e7a913fc80137da52880fecca175bf81e117d5c68126dc2774033517ea0d"))
        #expect(
            Hash.keyed(Array(0...254), key: key, length: 64)
                == bytes(
                    """
                    0cea916812cf434b1a2d1f117fb0533085f1f664682b62266ee6ad54a431d114
                    d1101f4405303285a406547a6ca2d264c0531caa2ec0b3f6a99fba80116041fe
                    """))
    }

    /// Computed with Python's hashlib over the input that `derive` documents: each part behind its
    /// length in eight bytes.
    @Test func derivationAgreesWithItsDescription() throws {
        let key = try SymmetricKey(copying: SecretBytes(copying: Array(UInt8(0)..<32)))
        let other = try SymmetricKey(copying: SecretBytes(copying: Array(UInt8(32)..<64)))
        let derived = try Hash.derive(from: key, label: "label", parts: [[1, 2], []], secrets: [other])
        #expect(
            derived.withBytes { Array($0) }
                == bytes("af1789b4cdab73aab08fc9c7302871c67248edab12829e35a886974bbb3c204f"))
    }

    @Test func derivationTellsEveryListOfPartsApart() throws {
        let key = try SymmetricKey.random()
        let lists: [(String, [[UInt8]])] = [
            ("a", []), ("ab", []), ("a", [[]]), ("a", [[0x62]]), ("a", [[1, 2]]), ("a", [[1], [2]]),
            ("a", [[1, 2], []]), ("a", [[], [1, 2]]), ("", [[0x61]]),
        ]
        let derived = try lists.map { label, parts in
            try Hash.derive(from: key, label: label, parts: parts).withBytes { Array($0) }
        }
        #expect(Set(derived).count == lists.count)
    }

    /// Computed with the reference implementation of Argon2 (argon2-cffi), version 0x13, one lane.
    @Test(arguments: [
        ("password", "def6fd068289b9a0cf1114f8e978a2c4dab6faef377d895b9c2d59fc93fc5653"),
        ("", "cabd8eb65ac84e96b96e15047b5d84c21dcf0d387defa2220c7d4a6ddbf92a6c"),
    ])
    func argon2idAgreesWithTheReferenceImplementation(_ passphrase: String, _ expected: String) throws {
        let key = try PasswordHash.derive(
            passphrase: SecretBytes(copying: passphrase.utf8), salt: Array(0..<16), cost: .minimum)
        #expect(PasswordHashCost.minimum == PasswordHashCost(passes: 3, memory: 64 << 20))
        #expect(key.withBytes { Array($0) } == bytes(expected))
    }

    @Test func argon2idRefusesASaltOfAnotherLength() {
        for count in [0, 8, 15, 17, 32] {
            #expect(throws: CryptoError.invalidParameter) {
                try PasswordHash.derive(
                    passphrase: SecretBytes(copying: [1]), salt: [UInt8](repeating: 0, count: count),
                    cost: .minimum)
            }
        }
    }
}
