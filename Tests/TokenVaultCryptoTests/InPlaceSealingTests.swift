import Testing
import TokenVaultCrypto

@Suite struct InPlaceSealingTests {
    private let overhead = AuthenticatedEncryption.overhead
    private let front = AuthenticatedEncryption.front

    private func opened(_ bytes: [UInt8], _ range: Range<Int>, _ key: SymmetricKey) -> [UInt8]? {
        let result = AuthenticatedEncryption.openPublic(bytes, at: range, key: key, associatedData: [7])
        if case .plaintext(let plaintext) = result { return plaintext }
        return nil
    }

    @Test(arguments: [0, 1, 63, 64, 65, 1_000]) func whatIsSealedWhereItLiesOpens(_ count: Int) throws {
        let key = try SymmetricKey.random()
        let plaintext = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        let range = 5..<5 + count + overhead
        var bytes = [UInt8](repeating: 0xee, count: count + overhead + 9)
        bytes.replaceSubrange(5 + front..<5 + front + count, with: plaintext)
        var nonces = Nonces(for: 1)
        let isSealed = AuthenticatedEncryption.seal(
            &bytes, at: range, key: key, associatedData: [7], nonces: &nonces)
        #expect(isSealed)
        #expect(opened(bytes, range, key) == plaintext)
        #expect(bytes[..<5].allSatisfy { $0 == 0xee } && bytes[range.upperBound...].allSatisfy { $0 == 0xee })
    }

    @Test func aSecretIsSealedAsItsPrefixedBytesAre() throws {
        let key = try SymmetricKey.random()
        let secret = SecretBytes(copying: [1, 2, 3])
        var bytes = [UInt8](repeating: 0, count: 24 + overhead)
        var nonces = Nonces(for: 1)
        let isSealed = AuthenticatedEncryption.seal(
            prefixingLengthOf: secret, into: &bytes, at: 0..<bytes.count, key: key, associatedData: [7],
            nonces: &nonces)
        #expect(isSealed)
        let expected = SecretBytes(prefixingLengthOf: secret, paddedTo: 24).array()
        #expect(opened(bytes, 0..<bytes.count, key) == expected)
    }

    @Test func nothingOfASecretIsLeftWhereItWasSealed() throws {
        let key = try SymmetricKey.random()
        let marker = Marker()
        var bytes = [UInt8](repeating: 0, count: 80 + overhead)
        do {
            let secret = SecretBytes(capacity: 64) { target in
                marker.fill(target)
                return target.count
            }
            #expect(try marker.occurrences() > 0)
            var nonces = Nonces(for: 1)
            let isSealed = AuthenticatedEncryption.seal(
                prefixingLengthOf: secret, into: &bytes, at: 0..<bytes.count, key: key,
                associatedData: [], nonces: &nonces)
            #expect(isSealed)
        }
        #expect(try marker.occurrences() == 0)
        withExtendedLifetime(bytes) {}
    }

    @Test func aWipedKeySealsNothingAndTakesNoSecret() throws {
        let key = try SymmetricKey.random()
        key.wipe()
        var bytes = [UInt8](repeating: 3, count: 16 + overhead)
        var nonces = Nonces(for: 1)
        let isSealed = AuthenticatedEncryption.seal(
            &bytes, at: 0..<bytes.count, key: key, associatedData: [], nonces: &nonces)
        let isSecretSealed = AuthenticatedEncryption.seal(
            prefixingLengthOf: SecretBytes(copying: [1]), into: &bytes, at: 0..<bytes.count, key: key,
            associatedData: [], nonces: &nonces)
        #expect(!isSealed && !isSecretSealed)
        #expect(bytes.allSatisfy { $0 == 3 })
    }

    /// Also beyond what was expected.
    @Test(arguments: [0, 1, 2, 31, 32, 33, 500]) func noNonceIsGivenTwice(expected: Int) throws {
        let key = try SymmetricKey.random()
        var nonces = Nonces(for: expected)
        var met: Set<[UInt8]> = []
        for _ in 0..<300 {
            var bytes = [UInt8](repeating: 0, count: overhead)
            let isSealed = AuthenticatedEncryption.seal(
                &bytes, at: 0..<bytes.count, key: key, associatedData: [], nonces: &nonces)
            #expect(isSealed)
            met.insert(Array(bytes[..<front]))
        }
        #expect(met.count == 300)
    }
}
