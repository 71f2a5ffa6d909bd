import SystemPackage
import Testing
import TokenVault
import TokenVaultCrypto

@testable import TokenVaultFile

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// Only a session with the root key chooses the policy of the owner's secrets.
@Suite struct PolicyOriginTests {
    private let sandbox: Sandbox
    private let recovery = RecoveryKey()
    /// A session with the root key.
    private let owner: BlockingFileVault

    init() throws {
        sandbox = try Sandbox()
        owner = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: .recoveryKey(recovery), configuration: sandbox.configuration)
        #expect(try owner.addSlot(keyFile).scope == .afterFirstUnlock)
    }

    private func opened(_ method: UnlockMethod) throws -> BlockingFileVault {
        let vault = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try vault.unlock(with: method)
        return vault
    }

    private func limited() throws -> FileTokenStorage.Blocking { try opened(keyFile).storage(service: "s") }
    private var owned: FileTokenStorage.Blocking { owner.storage(service: "s") }

    private func metadata(_ key: TokenKey) throws -> TokenMetadata {
        try #require(try owned.metadata(for: key))
    }

    private static let policies: [AccessPolicy] = [.afterFirstUnlock, .afterFirstUnlockThisDeviceOnly]

    @Test(arguments: policies) func theOwnersSecretDoesNotInheritALimitedSessionsPolicy(
        _ policy: AccessPolicy
    ) throws {
        let key: TokenKey = "important"
        try limited().store(token: "bait", for: key, policy: policy)
        #expect(try metadata(key).isPolicyFromLimitedSession)
        #expect(try owned.list().items.map(\.isPolicyFromLimitedSession) == [true])
        #expect(try owned.item(for: key)?.metadata.isPolicyFromLimitedSession == true)
        let commit = try owned.commit([.store(Secret(utf8: "secret"), for: key)])
        let now = try metadata(key)
        #expect(commit.policyResets == [PolicyReset(key: key, from: policy, to: .whenUnlockedThisDeviceOnly)])
        #expect(now.policy == .whenUnlockedThisDeviceOnly && !now.isPolicyFromLimitedSession)
        let refused = #expect(throws: TokenStorageError.self) { try limited().retrieve(for: key) }
        #expect(refused?.code == .notPermitted)
        owner.lock()
        let dark = #expect(throws: TokenStorageError.self) { try owned.retrieve(for: key) }
        #expect(dark?.code == .locked)
    }

    @Test func aLockedSessionIsALimitedOne() throws {
        owner.lock()
        try owned.store(token: "bait", for: "k", policy: .afterFirstUnlock)
        try owner.unlock(with: .recoveryKey(recovery))
        #expect(try metadata("k").isPolicyFromLimitedSession)
        #expect(try owned.commit([.store(Secret(utf8: "secret"), for: "k")]).policyResets.count == 1)
        #expect(try metadata("k").policy == .whenUnlockedThisDeviceOnly)
    }

    @Test(arguments: policies) func theOwnersChoiceIsKept(_ policy: AccessPolicy) throws {
        try owned.store(token: "one", for: "k", policy: policy)
        #expect(try !metadata("k").isPolicyFromLimitedSession)
        // A session without the proof key keeps the proof as it is.
        try limited().store(token: "two", for: "k")
        try limited().store(token: "three", for: "k", policy: policy)
        try limited().commit([.update("k", details: TokenDetails(label: "a label"))])
        #expect(try !metadata("k").isPolicyFromLimitedSession)
        owner.lock()
        try owned.store(token: "four", for: "k")
        try owner.unlock(with: .recoveryKey(recovery))
        let commit = try owned.commit([.store(Secret(utf8: "five"), for: "k")])
        #expect(try commit.policyResets.isEmpty && metadata("k").policy == policy)
        // The proof is invalid for another policy or another key.
        let other = Self.policies.first { $0 != policy }
        try limited().store(token: "six", for: "k", policy: other)
        #expect(try metadata("k").isPolicyFromLimitedSession)
        try owned.store(token: "seven", for: "k", policy: policy)
        try limited().commit([.rename("k", to: "l")])
        #expect(try metadata("l").isPolicyFromLimitedSession)
    }

    @Test func onlyANewSecretOrAnExplicitPolicyEndsTheMark() throws {
        try limited().store(token: "bait", for: "k", policy: .afterFirstUnlock)
        try owned.commit([.update("k", details: TokenDetails(label: "a label"))])
        try owned.commit([.rename("k", to: "l")])
        let marked = try metadata("l")
        #expect(marked.isPolicyFromLimitedSession && marked.policy == .afterFirstUnlock)
        let commit = try owned.commit([.update("l", details: TokenDetails(policy: .afterFirstUnlock))])
        #expect(try commit.policyResets.isEmpty && !metadata("l").isPolicyFromLimitedSession)
        try owned.commit([.rename("l", to: "m")])
        #expect(try !metadata("m").isPolicyFromLimitedSession)
        try owned.store(token: "secret", for: "m")
        #expect(try metadata("m").policy == .afterFirstUnlock)
    }

    /// A program with the limited keys seals what it likes; the code of a policy is not among it.
    @Test func aForgedProofIsNone() throws {
        try owned.store(token: "owner's", for: "other", policy: .afterFirstUnlock)
        let session = try opened(keyFile).session()
        let codec = session.log.codec
        let item = try codec.item(service: "s", key: "k")
        let proofs: [[UInt8]] = [
            [UInt8](repeating: 0, count: PolicyProof.length), Random.bytes(PolicyProof.length),
            // The proof of another item of the owner.
            try #require(try proof(of: "other")),
        ]
        for proof in proofs {
            guard case .keys(let keys) = session.ring.accessForWriting(.afterFirstUnlock) else {
                Issue.record("no keys")
                return
            }
            _ = try session.queue.commit { (view, add) throws(TokenStorageError) in
                var supplies = ItemSealer.Supplies(for: 1)
                let metadata = TokenMetadata(
                    key: "k", service: "s", policy: .afterFirstUnlock, created: session.clock(),
                    modified: session.clock(), generation: Generation(rawValue: view.generation))
                try add([
                    try ItemSealer.item(
                        item,
                        metadata: ItemCoding.metadata(StoredMetadata(metadata: metadata, policyProof: proof)),
                        secret: Secret(utf8: "bait"), keys: keys, serviceTag: try codec.tag(ofService: "s"),
                        generation: view.generation, with: &supplies)
                ])
            }
            #expect(try owned.retrieve(for: "k") == "bait" && metadata("k").isPolicyFromLimitedSession)
        }
        try owned.store(token: "secret", for: "k")
        #expect(try metadata("k").policy == .whenUnlockedThisDeviceOnly)
    }

    private func proof(of key: TokenKey) throws -> [UInt8]? {
        let session = try owner.session()
        let item = try session.log.codec.item(service: "s", key: key)
        let (entry, file) = try #require(try session.log.entry(for: item))
        let keys = try #require(try session.keys(toRead: entry))
        let bytes = try session.log.read(entry.metadataRange, from: file)
        return try ItemSealer.openMetadata(
            bytes, in: 0..<bytes.count, of: item, generation: entry.generation,
            valueTag: entry.valueTag, keys: keys)?.policyProof
    }

    /// Stores new secrets without a policy over "chosen", whose policy is the owner's choice, and "marked".
    private func expectOnlyTheChosenPolicyIsKept() throws {
        try owned.store(token: "secret", for: "chosen")
        try owned.store(token: "secret", for: "marked")
        #expect(try metadata("chosen").policy == .afterFirstUnlock)
        #expect(try metadata("marked").policy == .whenUnlockedThisDeviceOnly)
    }

    @Test func aNewRootKeepsWhatWasChosenByWhom() throws {
        try owned.store(token: "owner's", for: "chosen", policy: .afterFirstUnlock)
        try limited().store(token: "bait", for: "marked", policy: .afterFirstUnlock)
        let old = try proof(of: "chosen")
        _ = try owner.rotateKeys(keeping: [.recoveryKey(recovery)], removing: [2])
        #expect(try metadata("marked").isPolicyFromLimitedSession)
        #expect(try !metadata("chosen").isPolicyFromLimitedSession)
        #expect(try proof(of: "chosen") != old)
        try expectOnlyTheChosenPolicyIsKept()
    }

    /// A crash comes between the new root and the compaction, and the next change drops keys that no item is sealed under.
    @Test func theKeysOfTheProofsStayWithTheItems() throws {
        try owned.store(token: "owner's", for: "chosen", policy: .afterFirstUnlock)
        try limited().store(token: "bait", for: "marked", policy: .afterFirstUnlock)
        _ = try owner.replaceRoot(
            [(.recoveryKey(recovery), .recoveryKey(recovery)), (keyFile, keyFile)], removing: [],
            droppingOthers: false, isResealing: false)
        try owner.removeUnusedKeys(try owner.session())
        #expect(try metadata("marked").isPolicyFromLimitedSession)
        #expect(try !metadata("chosen").isPolicyFromLimitedSession)
        try expectOnlyTheChosenPolicyIsKept()
    }

    /// A session that cannot renew a proof does not reseal the item.
    @Test func aLimitedSessionsCompactionTakesNoChoiceAway() throws {
        try owned.store(token: "owner's", for: "chosen", policy: .afterFirstUnlock)
        _ = try owner.replaceRoot(
            [(.recoveryKey(recovery), .recoveryKey(recovery)), (keyFile, keyFile)], removing: [],
            droppingOthers: false, isResealing: false)
        _ = try opened(keyFile).compact()
        #expect(try !metadata("chosen").isPolicyFromLimitedSession)
        _ = try owner.compact()
        #expect(try !metadata("chosen").isPolicyFromLimitedSession)
        #expect(try owner.itemsUnderOlderKeys(try owner.session()) == 0)
    }

    @Test func thatThereIsNoProofIsSeenWithoutTheRootKey() throws {
        try limited().store(token: "bait", for: "k", policy: .afterFirstUnlock)
        owner.lock()
        #expect(try metadata("k").isPolicyFromLimitedSession)
        #expect(try limited().metadata(for: "k")?.isPolicyFromLimitedSession == true)
        // The session cannot prove the policy, but the store is accepted.
        #expect(try owned.commit([.store(Secret(utf8: "newer"), for: "k")]).policyResets.isEmpty)
        #expect(try metadata("k").policy == .afterFirstUnlock)
    }

    @Test func aPolicyWithoutProofKeyIsNotTheOwnersChoice() throws {
        let vault = try owner.session().ring.vault
        let keys = try ClassKeys(
            policy: .afterFirstUnlock, version: 99, setTag: 0, metadata: try SymmetricKey.random(),
            secret: try SymmetricKey.random(), vault: vault)
        let item = try owner.session().log.codec.item(service: "s", key: "k")
        let metadata = TokenMetadata(
            key: "k", service: "s", policy: .afterFirstUnlock, created: Date(timeIntervalSince1970: 1),
            modified: Date(timeIntervalSince1970: 1), generation: Generation(rawValue: 1))
        let stored = StoredMetadata(
            metadata: metadata, policyProof: [UInt8](repeating: 0, count: PolicyProof.length))
        #expect(try owner.session().ring.policyOrigin(of: stored, item, under: keys) == .limitedSession)
        #expect(try opened(keyFile).session().ring.policyOrigin(of: stored, item, under: keys) == .unknown)
    }

    @Test func anExportTellsIt() throws {
        try owned.store(token: "owner's", for: "chosen", policy: .afterFirstUnlock)
        try limited().store(token: "bait", for: "marked", policy: .afterFirstUnlock)
        for (name, vault) in [("whole", owner), ("limited", try opened(keyFile))] {
            let file = sandbox.path.appending(name)
            _ = try vault.export(to: file, passphrase: Secret(utf8: "fake"))
            let other = try Sandbox()
            let copy = try BlockingFileVault.create(
                at: other.vault, unlockMethod: keyFile, configuration: other.configuration)
            _ = try copy.importItems(from: file, passphrase: Secret(utf8: "fake"))
            let marks = try copy.storage(service: "s").list().items.map(\.isPolicyFromLimitedSession)
            #expect(marks == [name == "limited", true], "\(name)")
        }
    }
}
