import Testing
import TokenVaultCrypto

/// The stream of messages: written by another binding of libsodium, and refused when anything is changed.
@Suite struct SecretStreamTests {
    /// Made with PyNaCl 1.6 under the key 80…9f and the associated data `header`.
    private static let header = bytes("166d7e591af01b6949cbecfc9ff0db187c4dd8c67321c11c")
    private static let messages = [
        bytes("33458c91f151d8060efd545e5c2b9953df8dc673a281868eb7f1d9e359f88a878808"),
        bytes("ced4ef49f2322846b3ac97ef72e6588e1e"),
        bytes("e29c83c7f83a68f45aadc1f605aaee6b9b41e360755bddd2a4"),
    ]
    private static let plaintexts = ["the first message", "", "the last"]

    private func key() throws -> SymmetricKey {
        try SymmetricKey(copying: SecretBytes(copying: Array(UInt8(0x80)...0x9f)))
    }

    /// What opens of `messages`, one after the other, up to the first that does not.
    private func opened(
        _ messages: [[UInt8]], header: [UInt8] = header, associatedData: String = "header"
    ) throws -> [(String, Bool)] {
        let stream = try SecretStream.Opener(key: try key(), header: header)
        var found: [(String, Bool)] = []
        for message in messages {
            guard let (plaintext, isLast) = stream.open(message, associatedData: Array(associatedData.utf8))
            else { break }
            found.append((String(decoding: plaintext.array(), as: UTF8.self), isLast))
        }
        return found
    }

    @Test func opensWhatAnotherProgramSealed() throws {
        let found = try opened(Self.messages)
        #expect(found.map(\.0) == Self.plaintexts)
        #expect(found.map(\.1) == [false, false, true])
    }

    @Test func opensWhatItSealed() throws {
        let key = try key()
        let sealer = try SecretStream.Sealer(key: key)
        let sealed = (0..<4).map { number in
            sealer.seal(
                SecretBytes(copying: Array("message \(number)".utf8)), associatedData: Array("header".utf8),
                isLast: number == 3)
        }
        let found = try opened(sealed, header: sealer.header)
        #expect(found.map(\.0) == (0..<4).map { "message \($0)" })
        #expect(found.map(\.1) == [false, false, false, true])
    }

    @Test func refusesEveryChange() throws {
        let messages = Self.messages
        #expect(try opened(messages, associatedData: "Header").isEmpty)
        #expect(try opened([messages[1], messages[0], messages[2]]).isEmpty)
        #expect(try opened([messages[0], messages[2]]).count == 1)
        #expect(try opened([messages[0], messages[0]]).count == 1)
        #expect(try opened([[]]).isEmpty)
        for bit in 0..<messages[0].count * 8 {
            var flipped = messages[0]
            flipped[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(try opened([flipped]).isEmpty, "bit \(bit)")
        }
        for bit in 0..<Self.header.count * 8 {
            var flipped = Self.header
            flipped[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(try opened(messages, header: flipped).isEmpty, "bit \(bit) of the header")
        }
        #expect(throws: CryptoError.invalidParameter) { try opened(messages, header: [1, 2, 3]) }
    }

    @Test func aWipedKeyBeginsNoStream() throws {
        let key = try key()
        key.wipe()
        #expect(throws: CryptoError.unavailable) { try SecretStream.Sealer(key: key) }
        #expect(throws: CryptoError.unavailable) { try SecretStream.Opener(key: key, header: Self.header) }
    }
}
