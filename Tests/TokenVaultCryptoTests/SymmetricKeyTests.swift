import Synchronization
import Testing
import TokenVaultCrypto
import TokenVaultPlatform

@Suite struct SymmetricKeyTests {
    private func bytes(of key: SymmetricKey) -> [UInt8]? { key.withBytes { Array($0) } }

    @Test func aKeyKeepsItsBytes() throws {
        let source = SecretBytes(copying: Array(UInt8(0)..<40))
        #expect(bytes(of: try SymmetricKey(copying: source)) == Array(0..<32))
        #expect(bytes(of: try SymmetricKey(copying: source, from: 8)) == Array(8..<40))
    }

    @Test func tooFewBytesAreNoKey() {
        let source = SecretBytes(copying: [UInt8](repeating: 1, count: 40))
        for offset in [-1, 9, 40, 41] {
            #expect(throws: CryptoError.invalidParameter) { try SymmetricKey(copying: source, from: offset) }
        }
    }

    @Test func randomKeysDiffer() throws {
        let keys = try (0..<50).map { _ in bytes(of: try SymmetricKey.random()) }
        #expect(Set(keys).count == keys.count)
        #expect(!keys.contains([UInt8](repeating: 0, count: 32)))
    }

    @Test func aNewKeyStartsFromZeros() throws {
        // More keys than one region holds. Wiped keys leave their places to the next ones.
        for _ in 0..<3 {
            var keys: [SymmetricKey] = []
            for _ in 0..<200 {
                keys.append(
                    try SymmetricKey { (target) throws(CryptoError) in
                        #expect(target.count == 32)
                        #expect(target.allSatisfy { $0 == 0 })
                        for index in target.indices { target[index] = 0xa5 }
                    })
            }
            let addresses = keys.map { key in key.withBytes { UInt(bitPattern: $0.baseAddress) } }
            #expect(Set(addresses).count == keys.count, "two keys share their bytes")
            for key in keys { key.wipe() }
        }
    }

    @Test func aKeyThatCouldNotBeFilledLeavesNoTrace() throws {
        var address: UInt?
        let filling = Random.bytes(32)
        #expect(throws: CryptoError.outOfMemory) {
            try SymmetricKey { (target) throws(CryptoError) in
                address = UInt(bitPattern: target.baseAddress)
                target.copyBytes(from: filling)
                throw .outOfMemory
            }
        }
        let place = try #require(address.flatMap { UnsafePointer<UInt8>(bitPattern: $0) })
        // The region stays mapped. A key of another test may be in this place by now, but not these bytes.
        let left = (0..<32).map { place[$0] }
        #expect(left != filling)
    }

    @Test func wipingOneKeyLeavesItsCopyAndItsNeighbours() throws {
        let keys = try (0..<10).map { _ in try SymmetricKey.random() }
        let before = keys.map { bytes(of: $0) }
        let copy = try keys[4].copy()
        keys[4].wipe()
        keys[4].wipe()
        #expect(bytes(of: keys[4]) == nil)
        #expect(bytes(of: copy) == before[4])
        for index in keys.indices where index != 4 { #expect(bytes(of: keys[index]) == before[index]) }
    }

    @Test func aWipedKeyRefusesEverything() throws {
        let key = try SymmetricKey.random()
        let other = try SymmetricKey.random()
        let sealed = try #require(AuthenticatedEncryption.seal([1], key: key, associatedData: []))
        key.wipe()
        #expect(AuthenticatedEncryption.seal([1], key: key, associatedData: []) == nil)
        #expect(Hash.keyed([1], key: key, length: 32) == nil)
        #expect(throws: CryptoError.unavailable) { try key.copy() }
        #expect(SymmetricKey.concatenating([other, key]) == nil)
        #expect(throws: CryptoError.unavailable) { try Hash.derive(from: key, label: "a") }
        #expect(throws: CryptoError.unavailable) { try Hash.derive(from: other, label: "a", secrets: [key]) }
        guard
            case .wiped = AuthenticatedEncryption.open(
                sealed, at: 0..<sealed.count, key: key, associatedData: []),
            case .wiped = AuthenticatedEncryption.openPublic(
                sealed, at: 0..<sealed.count, key: key, associatedData: [])
        else {
            Issue.record("a wiped key opened something")
            return
        }
    }

    @Test func wipingBesideUseIsOneOrTheOther() async throws {
        // A key that is wiped while it seals gives a valid seal or none, and never a seal under zeros.
        let zero = try SymmetricKey { (_) throws(CryptoError) in }
        for _ in 0..<200 {
            let key = try SymmetricKey.random()
            let copy = try key.copy()
            async let sealed = AuthenticatedEncryption.seal([7], key: key, associatedData: [])
            async let wiped: Void = key.wipe()
            _ = await wiped
            guard let bytes = await sealed else { continue }
            func opens(_ key: SymmetricKey) -> Bool {
                let opened = AuthenticatedEncryption.openPublic(
                    bytes, at: 0..<bytes.count, key: key, associatedData: [])
                if case .plaintext = opened { return true }
                return false
            }
            #expect(opens(copy))
            #expect(!opens(zero))
        }
    }

    @Test func aKeyInUseIsWipedWhenItIsGivenBack() throws {
        let key = try SymmetricKey.random()
        let digest = Hash.words(of: [1], key: key).map { [$0.0, $0.1, $0.2, $0.3] }
        let isWiped = Atomic<Bool>(false)
        let ended = Monitor(false)
        let thread = WorkerThread(name: "wiper")
        do {
            guard let use = key.use() else { throw CryptoError.unavailable }
            thread.run {
                key.wipe()
                isWiped.store(true, ordering: .releasing)
                ended.announce { $0 = true }
            }
            while !key.isWiped { WorkerThread.giveWay() }
            // A new use is refused, and the existing use still has the key.
            let isRefused = key.use() == nil
            #expect(isRefused)
            #expect(key.withBytes { _ in } == nil)
            let words = Hash.words(of: [1], in: 0..<1, with: use)
            #expect([words.0, words.1, words.2, words.3] == digest)
            let isDone = isWiped.load(ordering: .acquiring)
            #expect(!isDone)
        }
        ended.wait { $0 ? () : nil }
        #expect(bytes(of: key) == nil)
    }

    @Test func usersDoNotWaitForOneAnotherAndWipingWaitsForAll() throws {
        for _ in 0..<50 {
            let key = try SymmetricKey.random()
            let both = Monitor(0)
            let inside = Atomic<Int>(0)
            let ended = Monitor(0)
            let threads = (0..<2).map { _ in WorkerThread(name: "user") }
            for thread in threads {
                thread.run {
                    var isFirst = true
                    let used: () -> Void? = {
                        key.withBytes { _ in
                            inside.wrappingAdd(1, ordering: .relaxed)
                            // In the first round, each thread is inside at the same time as the other.
                            if isFirst {
                                both.announce { $0 += 1 }
                                both.wait { $0 == 2 ? () : nil }
                            }
                            isFirst = false
                            inside.wrappingSubtract(1, ordering: .releasing)
                        }
                    }
                    while used() != nil {}
                    ended.announce { $0 += 1 }
                }
            }
            both.wait { $0 == 2 ? () : nil }
            key.wipe()
            #expect(inside.load(ordering: .acquiring) == 0)
            #expect(bytes(of: key) == nil)
            ended.wait { $0 == 2 ? () : nil }
        }
    }
}
