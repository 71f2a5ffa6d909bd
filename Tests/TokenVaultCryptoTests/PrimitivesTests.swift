import Testing
import TokenVaultCrypto

@Suite struct PrimitivesTests {
    @Test func sealedBytesOpenOnlyWithTheirKeyAndAssociatedData() throws {
        let key = try SymmetricKey.random()
        let other = try SymmetricKey.random()
        let sealed = try #require(
            AuthenticatedEncryption.seal([1, 2, 3], key: key, associatedData: [9]))
        func opened(_ key: SymmetricKey, _ data: [UInt8]) -> [UInt8]? {
            let result = AuthenticatedEncryption.openPublic(
                sealed, at: 0..<sealed.count, key: key, associatedData: data)
            if case .plaintext(let bytes) = result { return bytes }
            return nil
        }
        #expect(opened(key, [9]) == [1, 2, 3])
        #expect(opened(key, [8]) == nil)
        #expect(opened(other, [9]) == nil)
    }

    @Test func aWipedKeyIsRefused() throws {
        let key = try SymmetricKey.random()
        key.wipe()
        #expect(AuthenticatedEncryption.seal([1], key: key, associatedData: []) == nil)
        #expect(key.withBytes { $0.count } == nil)
    }

    @Test func base64IsASCII() {
        func decode(_ bytes: [UInt8]) -> [UInt8]? { Base64.decode(SecretBytes(copying: bytes))?.array() }
        #expect(decode(Array("AAEC".utf8)) == [0, 1, 2])
        // U+01FE in UTF-8, and two letters.
        #expect(decode([0xc7, 0xbe, 0x45, 0x43]) == nil)
        for byte in UInt8(0x80)...0xff {
            #expect(decode([byte, 0x41, 0x41, 0x41]) == nil && decode([0x41, 0x41, 0x41, byte]) == nil)
        }
    }
}
