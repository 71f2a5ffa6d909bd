import Testing
import TokenVaultCrypto

/// Looks for secrets in the process's own memory. Each test first finds them where they must be, so that a
/// search that finds nothing cannot pass.
///
/// Runs with `LD_BIND_NOW`. Without it, the dynamic linker saves the vector registers on the stack when a
/// function of a shared library is called for the first time. The registers hold whatever the previous call
/// left in them.
@Suite struct WipingTests {
    private func secret(_ marker: Marker, count: Int = 64) -> SecretBytes {
        SecretBytes(capacity: count) { target in
            marker.fill(target)
            return target.count
        }
    }

    private func key(_ marker: Marker) throws -> SymmetricKey {
        try SymmetricKey { (target) throws(CryptoError) in marker.fill(target) }
    }

    @Test(arguments: [16, 64, 1_000, 100_000])
    func secretBytesAreGoneWithTheirLastReference(_ count: Int) throws {
        let marker = Marker()
        var bytes: SecretBytes? = secret(marker, count: count)
        #expect(try marker.occurrences() > 0)
        withExtendedLifetime(bytes) {}
        bytes = nil
        #expect(try marker.occurrences() == 0)
    }

    @Test func copiesOfSecretBytesAreGoneToo() throws {
        let marker = Marker()
        do {
            let bytes = secret(marker)
            let slice = try #require(bytes.slice(16..<48))
            let copy = bytes.withUnsafeBytes { SecretBytes(copying: $0) }
            let prefixed = SecretBytes(prefixingLengthOf: bytes, paddedTo: 128)
            let unprefixed = try #require(prefixed.unprefixed())
            #expect(unprefixed.isEqual(to: bytes) && copy.isEqual(to: bytes) && slice.count == 32)
            #expect(try marker.occurrences() >= 5)
        }
        #expect(try marker.occurrences() == 0)
    }

    @Test func aWipedKeyIsGoneAtOnce() throws {
        let marker = Marker()
        let key = try key(marker)
        #expect(try marker.occurrences() > 0)
        key.wipe()
        #expect(key.isWiped)
        #expect(try marker.occurrences() == 0)
    }

    @Test func aKeyIsGoneWithItsLastReference() throws {
        let marker = Marker()
        do {
            let key = try key(marker)
            let copy = try key.copy()
            withExtendedLifetime(copy) {}
            #expect(try marker.occurrences() > 0)
            withExtendedLifetime(key) {}
        }
        #expect(try marker.occurrences() == 0)
    }

    @Test func whatWasOpenedIsGoneWithItsLastReference() throws {
        let marker = Marker()
        let key = try SymmetricKey.random()
        let sealed = try #require(
            AuthenticatedEncryption.seal(secret(marker), key: key, associatedData: []))
        #expect(try marker.occurrences() == 0)
        do {
            let opened = AuthenticatedEncryption.open(
                sealed, at: 0..<sealed.count, key: key, associatedData: [])
            guard case .plaintext(let plaintext) = opened else {
                Issue.record("sealed bytes do not open")
                return
            }
            #expect(plaintext.count == 64)
            #expect(try marker.occurrences() > 0)
            withExtendedLifetime(plaintext) {}
        }
        #expect(try marker.occurrences() == 0)
    }

    @Test func whatIsForgedLeavesNothingBehind() throws {
        let marker = Marker()
        let key = try SymmetricKey.random()
        var sealed = try #require(
            AuthenticatedEncryption.seal(secret(marker), key: key, associatedData: []))
        sealed[sealed.count - 1] ^= 1
        let opened = AuthenticatedEncryption.open(
            sealed, at: 0..<sealed.count, key: key, associatedData: [])
        guard case .forged = opened else {
            Issue.record("a forgery was opened")
            return
        }
        #expect(try marker.occurrences() == 0)
    }

    @Test(arguments: [100, 10_000])
    func whatWasOpenedIntoScratchMemoryIsGoneWithIt(_ count: Int) throws {
        let marker = Marker()
        let key = try SymmetricKey.random()
        let sealed = try #require(
            AuthenticatedEncryption.seal(secret(marker, count: count), key: key, associatedData: []))
        let other = try #require(AuthenticatedEncryption.seal([1], key: key, associatedData: []))
        do {
            var scratch = Scratch()
            guard let use = key.use() else { throw CryptoError.unavailable }
            var opened = [scratch.open(sealed, at: 0..<sealed.count, with: use, associatedData: [])]
            var counts = [scratch.count]
            #expect(try marker.occurrences() > 0)
            // A failed decryption leaves no plaintext behind.
            opened.append(scratch.open(sealed, at: 0..<sealed.count, with: use, associatedData: [1]))
            counts.append(scratch.count)
            opened.append(scratch.open(other, at: 0..<other.count, with: use, associatedData: []))
            counts.append(scratch.count)
            let first = scratch.bytes[0]
            #expect(opened == [true, false, true])
            #expect(counts == [count, 0, 1] && first == 1)
        }
        #expect(try marker.occurrences() == 0)
    }
}
