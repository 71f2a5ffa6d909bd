import Testing
import TokenVaultCrypto

@Suite struct SecretBytesTests {
    @Test func bytesAreCopiedFromAnySequence() {
        #expect(SecretBytes(copying: [1, 2, 3]).array() == [1, 2, 3])
        #expect(SecretBytes(copying: stride(from: UInt8(1), through: 3, by: 1)).array() == [1, 2, 3])
        #expect(SecretBytes(copying: "é".utf8).array() == [0xc3, 0xa9])
        #expect(SecretBytes(copying: []).count == 0)
    }

    @Test func theFillSaysHowManyBytesCount() {
        #expect(SecretBytes(capacity: 8) { _ in 3 }.array() == [0, 0, 0])
        #expect(SecretBytes(capacity: 8) { _ in 9 }.count == 8)
        #expect(SecretBytes(capacity: 8) { _ in -1 }.count == 0)
        #expect(SecretBytes(capacity: 0) { $0.count }.count == 0)
        #expect(SecretBytes(capacity: -1) { $0.count }.count == 0)
    }

    @Test func partsAreInsideOrNil() {
        let bytes = SecretBytes(copying: [1, 2, 3, 4])
        #expect(bytes.slice(1..<3)?.array() == [2, 3])
        #expect(bytes.slice(0..<4)?.array() == [1, 2, 3, 4])
        #expect(bytes.slice(4..<4)?.count == 0)
        #expect(bytes.slice(0..<5) == nil)
        #expect(bytes.slice(-1..<2) == nil)
    }

    @Test func equalityIsOfBytesAndLength() {
        let bytes = SecretBytes(copying: [1, 2, 3])
        #expect(bytes.isEqual(to: SecretBytes(copying: [1, 2, 3])))
        #expect(!bytes.isEqual(to: SecretBytes(copying: [1, 2, 4])))
        #expect(!bytes.isEqual(to: SecretBytes(copying: [1, 2])))
        #expect(SecretBytes(copying: []).isEqual(to: SecretBytes(copying: [])))
        #expect(constantTimeEqual([1, 2], [1, 2]))
        #expect(!constantTimeEqual([1, 2], [1, 3]))
        #expect(!constantTimeEqual([1, 2], [1]))
        #expect(constantTimeEqual([], []))
    }

    @Test func paddingIsTakenAwayAgain() {
        for count in [0, 1, 7, 8, 100] {
            let bytes = SecretBytes(copying: [UInt8](repeating: 9, count: count))
            for capacity in [0, 8, 64, 128] {
                let padded = SecretBytes(prefixingLengthOf: bytes, paddedTo: capacity)
                #expect(padded.count == max(capacity, count + 8))
                #expect(padded.unprefixed()?.array() == bytes.array())
            }
        }
    }

    @Test func paddingThatIsNotOursIsRefused() {
        let length: [UInt8] = [2, 0, 0, 0, 0, 0, 0, 0]
        #expect(SecretBytes(copying: length + [5, 6, 0]).unprefixed()?.array() == [5, 6])
        #expect(SecretBytes(copying: length + [5, 6, 1]).unprefixed() == nil)
        #expect(SecretBytes(copying: length + [5]).unprefixed() == nil)
        #expect(SecretBytes(copying: [1, 2, 3]).unprefixed() == nil)
        let huge = SecretBytes(copying: [UInt8](repeating: 0xff, count: 16))
        #expect(huge.unprefixed() == nil)
    }

    @Test func randomBytesAreAsManyAsAskedFor() {
        #expect(Random.bytes(0).isEmpty)
        #expect(Random.bytes(-1).isEmpty)
        #expect(Random.bytes(33).count == 33)
        #expect(Random.bytes(32) != Random.bytes(32))
    }

    @Test func everySealHasANonceOfItsOwn() throws {
        let key = try SymmetricKey.random()
        let seals = try (0..<100).map { _ in
            try #require(AuthenticatedEncryption.seal([1, 2, 3], key: key, associatedData: []))
        }
        #expect(Set(seals.map { Array($0.prefix(24)) }).count == seals.count)
        #expect(seals.allSatisfy { $0.count == 3 + AuthenticatedEncryption.overhead })
    }

    @Test func rangesOutsideAreForgeries() throws {
        let key = try SymmetricKey.random()
        let sealed = try #require(AuthenticatedEncryption.seal([1], key: key, associatedData: []))
        for range in [-1..<40, 0..<sealed.count + 1, 0..<39, 5..<5] {
            guard
                case .forged = AuthenticatedEncryption.open(
                    sealed, at: range, key: key, associatedData: [])
            else {
                Issue.record("\(range) was opened")
                continue
            }
        }
        let framed = [9, 9] + sealed + [9]
        let opened = AuthenticatedEncryption.openPublic(
            framed, at: 2..<2 + sealed.count, key: key, associatedData: [])
        guard case .plaintext([1]) = opened else {
            Issue.record("a seal inside other bytes does not open")
            return
        }
    }
}
