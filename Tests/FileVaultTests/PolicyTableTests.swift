import SystemPackage
import Testing
import TokenVault

/// Every policy in every situation of a vault: what a read, a replace and a delete answer.
@Suite struct PolicyTableTests {
    enum Situation: String, CaseIterable, CustomTestStringConvertible {
        case neverUnlocked, unlocked, unlockedWithKeyFile, unlockedWithKeyFileOfAll, unlockedWithRecoveryKey
        case lockedAgain, lockedAgainWithKeyFile, anotherDevice, anotherDeviceWithKeyFile, passphraseRemoved
        case anotherDeviceEnrolled, deviceRemoved, revokedElsewhere
        case restored, restoredWithoutState, restoredAfterPassphraseRemoved, restoredUnderOpenVault
        case restoredFromBeforeRevocation, copyRead
        case exportedAndImported, oldCopyWithRevokedSlot
        var testDescription: String { rawValue }
    }

    enum Answer: Equatable, CustomStringConvertible {
        case value, absent
        case refused(TokenStorageError.Code)

        var description: String {
            switch self {
            case .value: "value"
            case .absent: "absent"
            case .refused(let code): code.rawValue
            }
        }
    }

    /// What reading must answer, policy by policy.
    static let expected: [Situation: [AccessPolicy: Answer]] = [
        .neverUnlocked: [
            .whenUnlocked: .refused(.locked), .afterFirstUnlock: .refused(.locked),
            .whenUnlockedThisDeviceOnly: .refused(.locked),
            .afterFirstUnlockThisDeviceOnly: .refused(.locked),
            .whenPasscodeSetThisDeviceOnly: .refused(.locked),
        ],
        .unlocked: [
            .whenUnlocked: .value, .afterFirstUnlock: .value, .whenUnlockedThisDeviceOnly: .value,
            .afterFirstUnlockThisDeviceOnly: .value, .whenPasscodeSetThisDeviceOnly: .value,
        ],
        .unlockedWithKeyFile: [
            .whenUnlocked: .refused(.notPermitted), .afterFirstUnlock: .value,
            .whenUnlockedThisDeviceOnly: .refused(.notPermitted), .afterFirstUnlockThisDeviceOnly: .value,
            .whenPasscodeSetThisDeviceOnly: .refused(.notPermitted),
        ],
        .unlockedWithKeyFileOfAll: [
            .whenUnlocked: .value, .afterFirstUnlock: .value, .whenUnlockedThisDeviceOnly: .value,
            .afterFirstUnlockThisDeviceOnly: .value,
            .whenPasscodeSetThisDeviceOnly: .refused(.notPermitted),
        ],
        .unlockedWithRecoveryKey: [
            .whenUnlocked: .value, .afterFirstUnlock: .value, .whenUnlockedThisDeviceOnly: .value,
            .afterFirstUnlockThisDeviceOnly: .value,
            .whenPasscodeSetThisDeviceOnly: .refused(.notPermitted),
        ],
        .anotherDeviceEnrolled: [
            .whenUnlocked: .value, .afterFirstUnlock: .value,
            .whenUnlockedThisDeviceOnly: .refused(.wrongDevice),
            .afterFirstUnlockThisDeviceOnly: .refused(.wrongDevice),
            .whenPasscodeSetThisDeviceOnly: .refused(.wrongDevice),
        ],
        .deviceRemoved: [
            .whenUnlocked: .value, .afterFirstUnlock: .value, .whenUnlockedThisDeviceOnly: .absent,
            .afterFirstUnlockThisDeviceOnly: .absent, .whenPasscodeSetThisDeviceOnly: .absent,
        ],
        // Items that may not leave the device stayed behind.
        .exportedAndImported: [
            .whenUnlocked: .value, .afterFirstUnlock: .value, .whenUnlockedThisDeviceOnly: .absent,
            .afterFirstUnlockThisDeviceOnly: .absent, .whenPasscodeSetThisDeviceOnly: .absent,
        ],
        // A stolen copy with its key file still gives its items, except for this device's items.
        .oldCopyWithRevokedSlot: [
            .whenUnlocked: .value, .afterFirstUnlock: .value,
            .whenUnlockedThisDeviceOnly: .refused(.wrongDevice),
            .afterFirstUnlockThisDeviceOnly: .refused(.wrongDevice),
            .whenPasscodeSetThisDeviceOnly: .refused(.wrongDevice),
        ],
        .revokedElsewhere: [
            .whenUnlocked: .refused(.locked), .afterFirstUnlock: .refused(.locked),
            .whenUnlockedThisDeviceOnly: .refused(.locked),
            .afterFirstUnlockThisDeviceOnly: .refused(.locked),
            .whenPasscodeSetThisDeviceOnly: .refused(.locked),
        ],
        .lockedAgainWithKeyFile: [
            .whenUnlocked: .refused(.locked), .afterFirstUnlock: .value,
            .whenUnlockedThisDeviceOnly: .refused(.locked), .afterFirstUnlockThisDeviceOnly: .value,
            .whenPasscodeSetThisDeviceOnly: .refused(.locked),
        ],
        .anotherDeviceWithKeyFile: [
            .whenUnlocked: .refused(.notPermitted), .afterFirstUnlock: .value,
            .whenUnlockedThisDeviceOnly: .refused(.wrongDevice),
            .afterFirstUnlockThisDeviceOnly: .refused(.wrongDevice),
            .whenPasscodeSetThisDeviceOnly: .refused(.wrongDevice),
        ],
        .lockedAgain: [
            .whenUnlocked: .refused(.locked), .afterFirstUnlock: .value,
            .whenUnlockedThisDeviceOnly: .refused(.locked), .afterFirstUnlockThisDeviceOnly: .value,
            .whenPasscodeSetThisDeviceOnly: .refused(.locked),
        ],
        .anotherDevice: [
            .whenUnlocked: .value, .afterFirstUnlock: .value,
            .whenUnlockedThisDeviceOnly: .refused(.wrongDevice),
            .afterFirstUnlockThisDeviceOnly: .refused(.wrongDevice),
            .whenPasscodeSetThisDeviceOnly: .refused(.wrongDevice),
        ],
        .restored: allReadable, .restoredUnderOpenVault: allReadable, .copyRead: allReadable,
        .restoredFromBeforeRevocation: allReadable,
        .restoredWithoutState: [
            .whenUnlocked: .value, .afterFirstUnlock: .value,
            .whenUnlockedThisDeviceOnly: .refused(.wrongDevice),
            .afterFirstUnlockThisDeviceOnly: .refused(.wrongDevice),
            .whenPasscodeSetThisDeviceOnly: .refused(.wrongDevice),
        ],
        // The keys of this class were destroyed with the passphrase, and a copy does not bring them back.
        .restoredAfterPassphraseRemoved: [
            .whenUnlocked: .value, .afterFirstUnlock: .value, .whenUnlockedThisDeviceOnly: .value,
            .afterFirstUnlockThisDeviceOnly: .value,
            .whenPasscodeSetThisDeviceOnly: .refused(.wrongDevice),
        ],
        .passphraseRemoved: [
            .whenUnlocked: .value, .afterFirstUnlock: .value, .whenUnlockedThisDeviceOnly: .value,
            .afterFirstUnlockThisDeviceOnly: .value, .whenPasscodeSetThisDeviceOnly: .absent,
        ],
    ]

    private static let allReadable = Dictionary(
        uniqueKeysWithValues: AccessPolicy.allCases.map { ($0, Answer.value) })

    static let passphrase = UnlockMethod.passphrase(Secret(utf8: "not a real passphrase"))
    static let keyFileOfAll = UnlockMethod.keyFile(Secret([UInt8](repeating: 0x42, count: 32)))
    static let recoveryKey = RecoveryKey()

    /// A vault with a passphrase, a key file, one that opens everything, a recovery key and an item of each
    /// policy, in `situation`.
    private func vault(in sandbox: Sandbox, _ situation: Situation) throws -> BlockingFileVault {
        let made = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: Self.passphrase, configuration: sandbox.configuration)
        _ = try made.addSlot(keyFile)
        _ = try made.addSlot(Self.keyFileOfAll, scope: .all)
        _ = try made.addSlot(.recoveryKey(Self.recoveryKey))
        let storage = made.storage(service: "policies")
        #expect(storage.supportedPolicies == Set(AccessPolicy.allCases))
        for policy in AccessPolicy.allCases {
            try storage.store(
                token: "value of \(policy.rawValue)", for: TokenKey(policy.rawValue), policy: policy)
        }
        func opened(_ method: UnlockMethod?) throws -> BlockingFileVault {
            let vault = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
            if let method { try vault.unlock(with: method) }
            return vault
        }
        switch situation {
        case .neverUnlocked: return try opened(nil)
        case .unlocked: return try opened(Self.passphrase)
        case .unlockedWithKeyFile: return try opened(keyFile)
        case .unlockedWithKeyFileOfAll: return try opened(Self.keyFileOfAll)
        case .unlockedWithRecoveryKey: return try opened(.passphrase(Self.recoveryKey.text))
        case .lockedAgain, .lockedAgainWithKeyFile:
            let vault = try opened(situation == .lockedAgain ? Self.passphrase : keyFile)
            vault.lock()
            return vault
        case .anotherDevice, .anotherDeviceWithKeyFile, .anotherDeviceEnrolled:
            let vault = try BlockingFileVault.open(at: sandbox.vault, configuration: elsewhere(sandbox))
            try vault.unlock(with: situation == .anotherDeviceWithKeyFile ? keyFile : Self.passphrase)
            if situation == .anotherDeviceEnrolled { _ = try vault.enrolDevice() }
            return vault
        case .deviceRemoved:
            _ = try made.removeDevice(try #require(try made.devices().first).id)
            return try opened(Self.passphrase)
        case .revokedElsewhere:
            // A handle that holds the old root, after every item was sealed again.
            let vault = try opened(Self.passphrase)
            _ = try made.rotateKeys(keeping: [Self.passphrase], droppingOthers: true)
            return vault
        case .restored, .restoredWithoutState, .restoredAfterPassphraseRemoved, .restoredUnderOpenVault,
            .restoredFromBeforeRevocation, .copyRead:
            return try restored(made, in: sandbox, situation)
        case .exportedAndImported:
            let (file, words) = (sandbox.path.appending("export"), Secret(utf8: "fake words for the way"))
            #expect(try made.export(to: file, passphrase: words).staying == 3)
            let vault = try BlockingFileVault.create(
                at: sandbox.path.appending("other.vault"), unlockMethod: keyFile,
                configuration: elsewhere(sandbox))
            #expect(try vault.importItems(from: file, passphrase: words).added == 2)
            return vault
        case .oldCopyWithRevokedSlot:
            try PosixCopy(of: sandbox.vault, state: sandbox.path.appending("state")).write(to: "taken.vault")
            let copy = sandbox.vault.removingLastComponent().appending("taken.vault")
            let revoked = try #require(try made.slots().first { $0.kind == .keyFile && $0.scope == .all })
            _ = try made.rotateKeys(
                keeping: [Self.passphrase, keyFile, .recoveryKey(Self.recoveryKey)], removing: [revoked.id])
            try made.storage(service: "policies").store(token: "later", for: "later", policy: .whenUnlocked)
            let now = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
            #expect(
                answer {
                    try now.unlock(with: Self.keyFileOfAll); return ""
                } == .refused(.wrongPassphrase))
            let vault = try BlockingFileVault.open(at: copy, configuration: elsewhere(sandbox))
            try vault.unlock(with: Self.keyFileOfAll)
            #expect(try vault.storage(service: "policies").retrieve(for: "later") == nil)
            return vault
        case .passphraseRemoved:
            let slot = try #require(try made.slots().first { $0.kind == .passphrase })
            try made.removeSlot(slot.id)
            return try opened(Self.keyFileOfAll)
        }
    }

    /// A copy of `made` put back after other things happened to the vault.
    private func restored(
        _ made: BlockingFileVault, in sandbox: Sandbox, _ situation: Situation
    ) throws -> BlockingFileVault {
        try sandbox.keepCopy(as: "copy.vault")
        var configuration = sandbox.configuration
        if situation == .copyRead {
            configuration.allowsOpeningCopies = true
            let vault = try BlockingFileVault.open(
                at: sandbox.path(of: "copy.vault"), configuration: configuration)
            try vault.unlock(with: Self.passphrase)
            return vault
        }
        switch situation {
        case .restoredAfterPassphraseRemoved:
            try made.removeSlot(try #require(try made.slots().first { $0.kind == .passphrase }).id)
        case .restoredFromBeforeRevocation:
            _ = try made.rotateKeys(keeping: [Self.passphrase], droppingOthers: true)
        default: _ = try made.storage(service: "policies").deleteAll()
        }
        if situation == .restoredWithoutState {
            configuration.stateDirectory = sandbox.path.appending("another-device")
        }
        let copy = try VaultCopy.open(at: sandbox.path(of: "copy.vault"), configuration: configuration)
        try copy.unlock(with: Self.passphrase)
        _ = try copy.restore(to: sandbox.vault)
        if situation == .restoredUnderOpenVault { return made }
        let vault = try BlockingFileVault.open(at: sandbox.vault, configuration: configuration)
        try vault.unlock(with: Self.passphrase)
        return vault
    }

    private func elsewhere(_ sandbox: Sandbox) -> FileVaultConfiguration {
        var configuration = sandbox.configuration
        configuration.stateDirectory = sandbox.path.appending("another-device")
        return configuration
    }

    private func answer(_ body: () throws -> String?) -> Answer {
        do {
            return try body() == nil ? .absent : .value
        } catch {
            return .refused((error as? TokenStorageError)?.code ?? .internalError)
        }
    }

    @Test(arguments: Situation.allCases)
    func everyPolicyAnswersAsTheTableSays(_ situation: Situation) throws {
        let sandbox = try Sandbox()
        let vault = try vault(in: sandbox, situation)
        let storage = vault.storage(service: "policies")
        let expected = try #require(Self.expected[situation])
        for policy in AccessPolicy.allCases {
            let wanted = try #require(expected[policy])
            let read = answer { try storage.retrieve(for: TokenKey(policy.rawValue)) }
            #expect(read == wanted, "\(policy.rawValue), read, \(situation.rawValue)")
            if read == .value {
                #expect(try storage.retrieve(for: TokenKey(policy.rawValue)) == "value of \(policy.rawValue)")
            }
            // An item that cannot be read cannot be replaced or deleted either, so nothing is destroyed
            // unseen.
            if case .refused(let code) = wanted {
                let replaced = answer {
                    "\(try storage.store(token: "other", for: TokenKey(policy.rawValue)))"
                }
                #expect(replaced == .refused(code), "\(policy.rawValue), replace, \(situation.rawValue)")
                let deleted = answer { "\(try storage.delete(for: TokenKey(policy.rawValue)))" }
                #expect(deleted == .refused(code), "\(policy.rawValue), delete, \(situation.rawValue)")
            }
        }
        let hidden = expected.values.count { if case .refused = $0 { true } else { false } }
        if situation == .neverUnlocked || situation == .revokedElsewhere {
            #expect(throws: TokenStorageError.self) { try storage.list() }
        } else {
            let listing = try storage.list()
            #expect(listing.hidden == hidden)
            #expect(listing.items.count == expected.values.count { $0 == .value })
            #expect(try storage.retrieve(for: "a key that was never stored") == nil)
        }
        // Every refused item is still there for the owner.
        if ![.passphraseRemoved, .deviceRemoved, .restoredAfterPassphraseRemoved, .copyRead].contains(
            situation)
        {
            let owner = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
            if situation == .restoredWithoutState {
                // The restored file lacks commits that this device has seen.
                #expect(failure { try owner.unlock(with: Self.passphrase) }?.code == .forked)
                let copy = try VaultCopy.open(at: sandbox.vault, configuration: sandbox.configuration)
                try copy.unlock(with: Self.passphrase)
                _ = try copy.adopt()
            }
            try owner.unlock(with: Self.passphrase)
            for policy in AccessPolicy.allCases {
                #expect(
                    try owner.storage(service: "policies").retrieve(for: TokenKey(policy.rawValue))
                        == "value of \(policy.rawValue)")
            }
        }
    }

    @Test func storingNewItemsFollowsTheLockState() throws {
        let sandbox = try Sandbox()
        let vault = try vault(in: sandbox, .lockedAgain)
        let storage = vault.storage(service: "policies")
        for policy in AccessPolicy.allCases {
            let stored = answer { "\(try storage.store(token: "new", for: "new \(policy)", policy: policy))" }
            #expect(stored == (policy.isReadableAfterFirstUnlock ? .value : .refused(.locked)), "\(policy)")
        }
        // Another unlock gives everything back, including the item that was stored meanwhile.
        try vault.unlock(with: Self.passphrase)
        #expect(try storage.list().hidden == 0)
        #expect(try storage.retrieve(for: "new \(AccessPolicy.afterFirstUnlock)") == "new")
    }

    @Test func anotherDeviceStoresPortableItemsOnly() throws {
        let sandbox = try Sandbox()
        let vault = try vault(in: sandbox, .anotherDevice)
        let storage = vault.storage(service: "policies")
        #expect(storage.supportedPolicies == [.whenUnlocked, .afterFirstUnlock])
        #expect(answer { "\(try storage.store(token: "x", for: "plain"))" } == .refused(.unsupportedPolicy))
        #expect(try storage.store(token: "x", for: "plain", policy: .whenUnlocked) > 0)
    }

    @Test func withoutAStateDirectoryThereAreOnlyPortablePolicies() throws {
        let sandbox = try Sandbox()
        var configuration = sandbox.configuration
        configuration.stateDirectory = nil
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: configuration)
        let storage = vault.storage(service: "policies")
        #expect(storage.defaultPolicy == .whenUnlocked)
        #expect(storage.supportedPolicies == [.whenUnlocked, .afterFirstUnlock])
        try storage.store(token: "x", for: "plain")
        #expect(try storage.metadata(for: "plain")?.policy == .whenUnlocked)
        #expect(try vault.status().rollbackProtection == .none)
    }

    @Test func aPasscodeItemNeedsAPassphraseAndDiesWithIt() throws {
        let sandbox = try Sandbox()
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let storage = vault.storage(service: "policies")
        let policy = AccessPolicy.whenPasscodeSetThisDeviceOnly
        #expect(
            answer { "\(try storage.store(token: "x", for: "k", policy: policy))" }
                == .refused(.unsupportedPolicy))
        let slot = try vault.addSlot(Self.passphrase)
        try storage.store(token: "first life", for: "k", policy: policy)
        let copy = try PosixCopy(of: sandbox.vault, state: sandbox.path.appending("state"))
        try vault.removeSlot(slot.id)
        #expect(try storage.retrieve(for: "k") == nil)
        // A later passphrase begins a new class, also within the same session.
        let later = try vault.addSlot(Self.passphrase)
        try storage.store(token: "second life", for: "k2", policy: policy)
        #expect(try storage.retrieve(for: "k2") == "second life")
        try vault.removeSlot(later.id)
        // The old file opens with the old passphrase, but the item is gone: its class was wrapped with a
        // pepper that no longer exists.
        try copy.restore(vaultOnly: true)
        let old = try BlockingFileVault.open(
            at: sandbox.vault, configuration: sandbox.configuration)
        #expect(
            answer {
                try old.unlock(with: Self.passphrase); return ""
            } == .refused(.rolledBack))
        try copy.removeAnchors()
        try old.unlock(with: Self.passphrase)
        #expect(answer { try old.storage(service: "policies").retrieve(for: "k") } == .refused(.wrongDevice))
    }
}
