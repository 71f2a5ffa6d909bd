import SystemPackage
import Testing
import TokenVault
import TokenVaultCrypto
import TokenVaultPlatform

@testable import TokenVaultFile

/// A key rotation, against an attacker with an old copy of the file, the old passphrase and the device's
/// keys.
@Suite struct RevocationTests {
    private let sandbox: Sandbox
    private static let old = Secret(utf8: "old fake words")
    private static let new = Secret(utf8: "new fake words")
    private static let second = UnlockMethod.keyFile(Secret([UInt8](repeating: 0x42, count: 32)))

    init() throws { sandbox = try Sandbox() }

    private func opened(_ method: UnlockMethod) throws -> BlockingFileVault {
        let vault = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try vault.unlock(with: method)
        return vault
    }
    /// A slot that another program made at a lower cost than writers take.
    @Test func aSlotThatStaysGetsTheLeastCost() throws {
        let place = sandbox.vault.removingLastComponent()
        try PosixDirectory.makeAll(place)
        let file = try PosixDirectory(place).open("test.vault", .create)
        try file.write(try VectorFiles.contents("vaults/cost-uneven.vault"), at: 0)
        let passphrase = Secret(utf8: "fake")
        let vault = try opened(.passphrase(passphrase))
        #expect(try vault.slots().map(\.cost) == [KeyDerivationCost(passes: 2, memory: 10_000_000)])
        _ = try vault.addSlot(keyFile, scope: .all)
        _ = try vault.rotateKeys(keeping: [.passphrase(passphrase)], removing: [2])
        #expect(try vault.slots().map(\.cost) == [.minimum])
        #expect(try opened(.passphrase(passphrase)).slots().count == 1)
    }

    private func code(_ body: () throws -> Void) -> TokenStorageError.Code? {
        do {
            try body()
            return nil
        } catch { return (error as? TokenStorageError)?.code }
    }
    private func bytes() throws -> [UInt8] {
        let file = try PosixDirectory(sandbox.vault.removingLastComponent()).open("test.vault", .read)
        return try file.read(try file.attributes().size, at: 0)
    }
    private func fill(_ vault: BlockingFileVault, _ name: String, _ policies: some Sequence<AccessPolicy>)
        throws
    {
        for policy in policies {
            try vault.storage(service: "s").store(
                token: "\(name) \(policy.rawValue)", for: "\(name) \(policy.rawValue)", policy: policy)
        }
    }

    /// The attacker, with every key that the old copy gives for the passphrase and the state directory.
    private struct Attacker {
        let keybag: Keybag
        let ring: KeyRing
        let roots: KeyRing.Roots

        init(copy: [UInt8], method: UnlockMethod, state: any DiskDirectory) throws {
            keybag = try Keybag(decoding: Array(copy[..<VaultFormat.keybagLength]))
            let secrets = try StateStore(directory: state, vault: keybag.vault).load()
            let (slot, roots) = try KeybagKeys.openSlot(of: keybag, with: method)
            self.roots = roots
            ring = try KeybagKeys.ring(
                of: keybag, slot: slot.identifier, roots: try roots.copied(), secrets: secrets)
        }

        /// The names of the items in `file` that some key opens, whatever the header says of its version.
        func readable(in file: [UInt8], _ secrets: KeybagKeys.DeviceSecrets) throws -> Set<String> {
            let codec = FrameCodec(vault: keybag.vault, keys: ring.log)
            var held = ring.held
            // Adds the keys of the new keybag that the old roots open.
            let fresh = try Keybag(decoding: Array(file[..<VaultFormat.keybagLength]))
            for set in fresh.sets {
                for key in set.keys {
                    guard let policy = AccessPolicy(number: key.policy),
                        let wrap = try KeybagKeys.classWrap(
                            policy, vault: fresh.vault, roots: roots, secrets: secrets),
                        let opened = try? KeybagKeys.open(
                            key.wrapped, wrap,
                            KeybagKeys.classData(key, device: set.device, vault: fresh.vault))
                    else { continue }
                    held.append(
                        try ClassKeys(
                            policy: policy, version: key.version, setTag: DeviceKey.setTag(of: set.device),
                            metadata: try SymmetricKey(copying: opened),
                            secret: try SymmetricKey(copying: opened, from: SymmetricKey.length),
                            vault: fresh.vault))
                }
            }
            var names: Set<String> = []
            var offset = VaultFormat.logStart
            while let length = Frame.length(ofPrefix: file, at: offset) {
                defer { offset += length }
                let frame = Array(file[offset..<offset + length])
                guard let header = try codec.header(in: frame, at: 0), header.isItem else { continue }
                let content = Array(frame[Frame.contentOffset..<length - 32])
                for keys in held {
                    // Version and policy are bound to the key, so the attacker tries the values of the
                    // header.
                    guard let policy = AccessPolicy(number: header.policy) else { continue }
                    let tried = try ClassKeys(
                        policy: policy, version: header.keyVersion, setTag: header.setTag,
                        metadata: keys.metadata, secret: keys.secret, vault: fresh.vault)
                    let metadata = try ItemSealer.openMetadata(
                        content, in: 0..<header.metadataLength, of: header.item,
                        generation: header.generation, valueTag: header.valueTag, keys: tried)
                    if let metadata { names.insert(metadata.metadata.key.name) }
                    let secret = try ItemSealer.openBody(
                        content, in: header.metadataLength..<content.count, of: header.item,
                        generation: header.generation, valueTag: header.valueTag, keys: tried)
                    if secret != nil, metadata == nil { names.insert("a secret") }
                }
            }
            return names
        }
    }

    @Test func anOldCopyOpensNothingThatIsWrittenLater() throws {
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: .passphrase(Self.old), configuration: sandbox.configuration)
        let recovery = RecoveryKey()
        _ = try vault.addSlot(.recoveryKey(recovery))
        _ = try vault.addSlot(keyFile)
        try fill(vault, "before", AccessPolicy.allCases)
        let generations = try vault.storage(service: "s").list().items.map(\.generation)
        let state = try PosixDirectory(sandbox.path.appending("state"))
        let attacker = try Attacker(copy: try bytes(), method: .passphrase(Self.old), state: state)
        let secrets = try StateStore(directory: state, vault: attacker.keybag.vault).load()
        let before = Set(AccessPolicy.allCases.map { "before \($0.rawValue)" })
        #expect(try attacker.readable(in: try bytes(), secrets) == before)

        // A plain change of the passphrase protects nothing, which is why rotation exists.
        try vault.changePassphrase(from: Self.old, to: Secret(utf8: "fake words between"))
        try fill(vault, "plain", [.whenUnlocked])
        #expect(try attacker.readable(in: try bytes(), secrets) == before.union(["plain when-unlocked"]))
        try vault.storage(service: "s").delete(for: "plain when-unlocked")

        // Replaces the root, without sealing the items again, as after a crash.
        let between = UnlockMethod.passphrase(Secret(utf8: "fake words between"))
        let halfway = try vault.replaceRoot(
            [
                (between, .passphrase(Self.new)), (.recoveryKey(recovery), .recoveryKey(recovery)),
                (keyFile, keyFile),
            ],
            removing: [], droppingOthers: false, isResealing: false)
        #expect(halfway.removed.isEmpty && halfway.remaining == 5)
        try fill(vault, "after", AccessPolicy.allCases)
        #expect(try attacker.readable(in: try bytes(), secrets) == before)
        // The owner reads everything, in this session and in others.
        for method in [UnlockMethod.passphrase(Self.new), .recoveryKey(recovery)] {
            let items = try opened(method).storage(service: "s").list()
            #expect(items.items.count == (method.isPassphrase ? 10 : 8))
        }
        #expect(try opened(keyFile).storage(service: "s").list().items.count == 4)
        for method in [between, .passphrase(Self.old)] {
            #expect(code { _ = try opened(method) } == .wrongPassphrase)
        }

        // After the items are sealed again, the attacker opens nothing in the new file. The items keep their
        // generations and dates.
        _ = try vault.compact()
        #expect(try attacker.readable(in: try bytes(), secrets).isEmpty)
        let listing = try vault.storage(service: "s").list()
        #expect(listing.items.count == 10 && listing.hidden == 0)
        #expect(
            Set(listing.items.filter { $0.key.name.hasPrefix("before") }.map(\.generation))
                == Set(generations))
        #expect(
            try vault.storage(service: "s").retrieve(for: "before when-unlocked") == "before when-unlocked")
        // The new keybag does not contain the old keys either.
        let keybag = try Keybag(decoding: Array(try bytes()[..<VaultFormat.keybagLength]))
        #expect(keybag.sets.map { $0.keys.map(\.version) } == [[2, 2], [2, 2, 2]])
        #expect(try vault.verify().isClean)
        // The old keybag in front of the new log opens nothing either.
        let file = try PosixDirectory(sandbox.vault.removingLastComponent()).open("test.vault", .readWrite)
        let whole = try file.read(VaultFormat.logStart, at: 0)
        let former = try #require(attacker.keybag.encoded())
        try file.write(former + former, at: 0)
        #expect(code { _ = try opened(.passphrase(Self.old)) } == .corrupt)
        try file.write(whole, at: 0)
        #expect(try opened(.passphrase(Self.new)).storage(service: "s").list().items.count == 10)
    }

    @Test func aPassphraseIsRevokedInOneCall() throws {
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: .passphrase(Self.old), configuration: sandbox.configuration)
        _ = try vault.addSlot(keyFile)
        try fill(vault, "k", AccessPolicy.allCases)
        // The call names the losses before it changes anything.
        let refused = #expect(throws: TokenStorageError.self) {
            try vault.rotatePassphrase(Self.old, replacedBy: Self.new)
        }
        #expect(refused?.code == .notPermitted)
        #expect(refused?.underlying == "slot 2 (key-file) would be lost")
        #expect(code { _ = try vault.rotatePassphrase(Self.new, replacedBy: Self.old) } == .wrongPassphrase)
        #expect(try opened(.passphrase(Self.old)).slots().count == 2)

        let report = try vault.rotatePassphrase(Self.old, replacedBy: Self.new, droppingOthers: true)
        #expect(report.removed.map(\.id) == [2] && report.resealed == 5 && report.remaining == 0)
        #expect(report.deferredReason == nil)
        #expect(code { _ = try opened(keyFile) } == .wrongPassphrase)
        let again = try opened(.passphrase(Self.new))
        #expect(try again.storage(service: "s").list().items.count == 5)
        #expect(try again.slots().map(\.id) == [1])
        // A second rotation gives a third version, and the vault still works.
        let twice = try again.rotatePassphrase(Self.new, replacedBy: Self.old)
        #expect(twice.resealed == 5)
        try fill(again, "more", AccessPolicy.allCases)
        #expect(try opened(.passphrase(Self.old)).storage(service: "s").list().items.count == 10)
    }

    /// What it was unlocked with opens nothing any more: giving that again would not help.
    @Test func whoeverHasTheVaultOpenIsToldToUnlockItAgain() throws {
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: .passphrase(Self.old), configuration: sandbox.configuration)
        try fill(vault, "k", [.whenUnlocked])
        let (other, slow) = (try opened(.passphrase(Self.old)), try opened(.passphrase(Self.old)))
        _ = try vault.rotatePassphrase(Self.old, replacedBy: Self.new)
        let storage = other.storage(service: "s")
        let reading = #expect(throws: TokenStorageError.self) { try storage.secret(for: "k when-unlocked") }
        let writing = #expect(throws: TokenStorageError.self) { try storage.store(token: "fake", for: "new") }
        let changing = #expect(throws: TokenStorageError.self) { try other.addSlot(keyFile) }
        for error in [reading, writing, changing] {
            #expect(error?.code == .locked && error?.advice == "unlock it again")
        }
        let revoking = #expect(throws: TokenStorageError.self) {
            try slow.rotatePassphrase(Self.old, replacedBy: Self.new)
        }
        #expect(revoking?.code == .locked && revoking?.advice == "unlock it again")
        try other.unlock(with: .passphrase(Self.new))
        #expect(try storage.retrieve(for: "k when-unlocked") == "k when-unlocked")
    }

    @Test func aSlotIsRevoked() throws {
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let slot = try vault.addSlot(Self.second)
        try fill(vault, "k", [.whenUnlocked, .afterFirstUnlockThisDeviceOnly])
        let copy = try bytes()
        #expect(code { _ = try vault.rotateKeys(keeping: [keyFile], removing: [7]) } == .slotNotFound)
        #expect(
            code { _ = try vault.rotateKeys(keeping: [], removing: [slot.id], droppingOthers: true) }
                == .lastSlot
        )
        #expect(code { _ = try vault.rotateKeys(keeping: [], removing: [slot.id]) } == .notPermitted)
        let report = try vault.rotateKeys(keeping: [keyFile], removing: [slot.id])
        #expect(report.removed == [slot] && report.resealed == 2 && report.remaining == 0)
        try fill(vault, "later", [.whenUnlocked])
        let state = try PosixDirectory(sandbox.path.appending("state"))
        let attacker = try Attacker(copy: copy, method: Self.second, state: state)
        let secrets = try StateStore(directory: state, vault: attacker.keybag.vault).load()
        #expect(try attacker.readable(in: try bytes(), secrets).isEmpty)
        #expect(code { _ = try opened(Self.second) } == .wrongPassphrase)
        #expect(try opened(keyFile).storage(service: "s").list().items.count == 3)
    }

    /// A session with the old root key is locked out. It never writes with keys that the attacker knows.
    @Test(arguments: [false, true]) func otherSessionsHaveToUnlockAgain(isLocked: Bool) throws {
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        _ = try vault.addSlot(Self.second)
        try fill(vault, "k", [.whenUnlocked, .afterFirstUnlock])
        let other = try opened(keyFile)
        let storage = other.storage(service: "s")
        if isLocked { other.lock() }
        _ = try vault.replaceRoot(
            [(keyFile, keyFile)], removing: [2], droppingOthers: false, isResealing: false)
        // The handle cannot know which keybag replaced its own, so it answers nothing from the file.
        #expect(code { _ = try storage.retrieve(for: "k after-first-unlock") } == .locked)
        #expect(code { _ = try storage.retrieve(for: "k when-unlocked") } == .locked)
        #expect(code { _ = try storage.retrieve(for: "never stored") } == .locked)
        #expect(try other.lockState() == .afterFirstUnlock)
        #expect(code { try storage.store(token: "x", for: "new", policy: .afterFirstUnlock) } == .locked)
        #expect(code { _ = try other.addSlot(Self.second) } == .locked)
        _ = try vault.compact()
        #expect(code { _ = try storage.retrieve(for: "k after-first-unlock") } == .locked)
        try other.unlock(with: keyFile)
        #expect(try storage.list().items.count == 2)
        try storage.store(token: "x", for: "new", policy: .afterFirstUnlock)
        #expect(try vault.storage(service: "s").retrieve(for: "new") == "x")
    }

    /// Readers of the process that revokes notice nothing.
    @Test func readersOfTheSameProcessGoOn() throws {
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        try fill(vault, "k", [.whenUnlocked])
        let left = Monitor(2)
        let isDone = Monitor(false)
        let failures = Monitor<[TokenStorageError]>([])
        let threads = (0..<2).map { WorkerThread(name: "reader-\($0)") }
        for thread in threads {
            thread.run {
                repeat {
                    do throws(TokenStorageError) {
                        _ = try vault.storage(service: "s").list()
                        _ = try vault.storage(service: "s").retrieve(for: "k when-unlocked")
                    } catch {
                        failures.withLock { $0.append(error) }
                    }
                } while !isDone.withLock { $0 }
                left.announce { $0 -= 1 }
            }
        }
        for _ in 0..<20 { #expect(try vault.rotateKeys(keeping: [keyFile]).resealed == 1) }
        isDone.withLock { $0 = true }
        left.wait { $0 == 0 ? () : nil }
        #expect(failures.withLock { $0 } == [])
        #expect(try vault.lockState() == .unlocked)
    }

    @Test func withTheLastPassphraseGoesItsClass() throws {
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let slot = try vault.addSlot(.passphrase(Self.old))
        let holder = try opened(.passphrase(Self.old))
        try fill(holder, "k", AccessPolicy.allCases)
        let report = try holder.rotateKeys(keeping: [keyFile], removing: [slot.id])
        #expect(report.removed == [slot] && report.remaining == 0)
        #expect(try holder.storage(service: "s").retrieve(for: "k when-passcode-set-this-device-only") == nil)
        #expect(try holder.storage(service: "s").list().items.count == 4)
        // A handle with only the key file can keep a passphrase slot if the passphrase is given.
        _ = try holder.addSlot(.passphrase(Self.new))
        try fill(try opened(.passphrase(Self.new)), "k", AccessPolicy.allCases)
        let kept = try opened(keyFile).rotateKeys(keeping: [keyFile, .passphrase(Self.new)])
        #expect(kept.resealed == 4 && kept.remaining == 1)
        let both = try opened(.passphrase(Self.new))
        #expect(try both.storage(service: "s").list().items.count == 5)
        _ = try both.compact()
        #expect(try both.storage(service: "s").list().items.count == 5)
    }

    @Test func aFullDiskPutsTheSealingOff() throws {
        let disk = SimulatedDisk(try SimulatedVault.fresh())
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        _ = try vault.addSlot(SimulatedVault.key("second"))
        let storage = vault.storage(service: SimulatedVault.service)
        try storage.store(token: "fake", for: "k")
        disk.inject(
            DiskFault(kind: .create, directory: 0, skipping: 0, times: 1, errno: .noSpace, bytesWritten: 0))
        let report = try vault.rotateKeys(keeping: [SimulatedVault.key("first")], removing: [2])
        #expect(report.deferredReason == .noSpace && report.remaining == 1 && report.resealed == 0)
        #expect(try storage.retrieve(for: "k") == "fake")
        #expect(try vault.status().notes.contains { $0.contains("before a key rotation") })
        _ = try vault.compact()
        #expect(try !vault.status().notes.contains { $0.contains("before a key rotation") })
        #expect(try vault.itemsUnderOlderKeys(try vault.session()) == 0)
        #expect(try storage.retrieve(for: "k") == "fake")
    }
}
