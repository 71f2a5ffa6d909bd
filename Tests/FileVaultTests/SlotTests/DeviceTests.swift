import Glibc
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// One vault on several devices: each with a state directory of its own.
@Suite struct DeviceTests {
    private let sandbox: Sandbox
    private static let passphrase = UnlockMethod.passphrase(Secret(utf8: "not a real passphrase"))

    init() throws { sandbox = try Sandbox() }

    private func configuration(_ device: String) -> FileVaultConfiguration {
        var configuration = sandbox.configuration
        configuration.stateDirectory = sandbox.path.appending(device)
        return configuration
    }
    private func opened(_ device: String, _ method: UnlockMethod = keyFile) throws -> BlockingFileVault {
        let vault = try BlockingFileVault.open(at: sandbox.vault, configuration: configuration(device))
        try vault.unlock(with: method)
        return vault
    }
    private func made(_ method: UnlockMethod = keyFile) throws -> BlockingFileVault {
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: method, configuration: sandbox.configuration)
        for policy in AccessPolicy.allCases
        where vault.storage(service: "s").supportedPolicies.contains(policy) {
            try vault.storage(service: "s").store(
                token: "of the first", for: "first \(policy.rawValue)", policy: policy)
        }
        return vault
    }
    private func error(_ body: () throws -> Void) -> TokenStorageError? {
        #expect(throws: TokenStorageError.self) { try body() }
    }

    /// A device key that cannot be read is not missing: its items are no other device's.
    @Test(arguments: [".device", ".pepper"]) func aKeyThatCannotBeReadIsNotMissing(suffix: String) throws {
        let device = TestDevice()
        try device.create()
        try device.use { try $0.storeOwn("fake", for: "own") }
        device.disk.inject(
            DiskFault(kind: .open, directory: 1, suffix: suffix, times: 9, errno: .permissionDenied))
        let refused = failure { try device.use { _ in } }
        #expect(refused?.code == .ioFailure, "\(refused as Any)")
        guard case .deviceKeyUnreadable = refused?.reason else {
            Issue.record("\(refused as Any)")
            return
        }
        device.disk.heal()
        #expect(try device.use { try $0.value(of: "own") } == "fake")
    }

    /// A device that lost only its passcode key is still enrolled. Removing and enrolling it makes another key.
    @Test func aMissingPasscodeKeyIsNotEnrolledAgain() throws {
        let vault = try made(Self.passphrase)
        vault.close()
        let state = sandbox.path.appending("state")
        for name in try PosixDirectory(state).names() where name.hasSuffix(".pepper") {
            #expect(unlink(state.appending(name).string) == 0)
        }
        let policy = AccessPolicy.whenPasscodeSetThisDeviceOnly
        let opened = try opened("state", Self.passphrase)
        let refused = error {
            try opened.storage(service: "s").store(token: "fake", for: "new", policy: policy)
        }
        #expect(refused?.reason == .policyUnsupported(.afterNewEnrolment), "\(refused as Any)")
        // Following the advice helps.
        let device = try #require(try opened.devices().first { $0.isThisDevice })
        _ = try opened.removeDevice(device.id)
        _ = try opened.enrolDevice()
        try opened.storage(service: "s").store(token: "fake", for: "new", policy: policy)
        #expect(try opened.storage(service: "s").retrieve(for: "new") == "fake")
    }

    /// A state directory that cannot be looked into is not missing.
    @Test func aStateDirectoryThatCannotBeLookedIntoIsNotMissing() throws {
        try made().close()
        let loop = sandbox.path.appending("loop")
        #expect(symlink("loop", loop.string) == 0)
        var configuration = sandbox.configuration
        configuration.stateDirectory = loop
        #expect(
            failure { _ = try BlockingFileVault.open(at: sandbox.vault, configuration: configuration) } != nil
        )
        configuration.stateDirectory = sandbox.path.appending("missing")
        #expect(
            failure { try BlockingFileVault.open(at: sandbox.vault, configuration: configuration).close() }
                == nil)
    }

    /// Every unlock looks for items whose keys were destroyed. What another process stored under keys that this
    /// one has not read yet is none of them.
    @Test func whatIsNewerThanTheKeysOfAProcessIsNotTakenForDestroyed() throws {
        let first = try made()
        let session = try first.session()
        // The first items of another device.
        let second = try opened("second")
        _ = try second.enrolDevice()
        try second.storage(service: "s").store(token: "of the second", for: "second")
        try session.removeDestroyedItems()
        #expect(try second.storage(service: "s").retrieve(for: "second") == "of the second")
        // The first items that need a passphrase.
        let other = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try other.unlock(with: keyFile)
        _ = try other.addSlot(Self.passphrase)
        try other.unlock(with: Self.passphrase)
        try other.storage(service: "s").store(token: "fake", for: "p", policy: .whenPasscodeSetThisDeviceOnly)
        try session.removeDestroyedItems()
        #expect(try other.storage(service: "s").retrieve(for: "p") == "fake")
        // Items without keys are still removed.
        let id = try #require(try second.devices().first { $0.isThisDevice }?.id)
        let count = try first.status().items
        #expect(try first.removeDevice(id) == 1)
        #expect(try first.status().items == count.map { $0 - 1 })
    }

    /// What is kept on the device is the vault's, and not that of a copy beside it.
    @Test func nothingDoneWithACopyTakesTheVaultsKeys() throws {
        let vault = try made(Self.passphrase)
        let original = try PosixCopy(of: sandbox.vault, state: sandbox.path.appending("state"))
        try original.write(to: "copy.vault")
        let path = sandbox.path.appending("vaults/copy.vault")
        var reading = sandbox.configuration
        reading.allowsOpeningCopies = true
        let copy = try BlockingFileVault.open(at: path, configuration: reading)
        try copy.unlock(with: Self.passphrase)
        let slot = try vault.slots()[0].id
        let device = try #require(try copy.devices().first?.id)
        #expect(error { _ = try copy.addSlot(keyFile, scope: .all) }?.code == .duplicateVault)
        #expect(error { try copy.removeSlot(slot) }?.code == .duplicateVault)
        #expect(error { _ = try copy.removeDevice(device) }?.code == .duplicateVault)
        let again = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        try again.unlock(with: Self.passphrase)
        for policy in AccessPolicy.allCases {
            let token = try again.storage(service: "s").retrieve(for: "first \(policy.rawValue)")
            #expect(token == "of the first", "\(policy)")
        }
    }

    @Test func aDeviceKeyThatCannotBeReadIsNotReplaced() throws {
        let vault = try made()
        let name = vault.identifier + ".device"
        let path = sandbox.path.appending("state").appending(name)
        let directory = try PosixDirectory(sandbox.path.appending("state"))
        try directory.rename(name, to: "kept", replacing: false)
        try PosixDirectory.makeAll(path)
        let error = error { _ = try vault.enrolDevice() }
        #expect(error?.code == .ioFailure, "\(String(describing: error))")
        try PosixDirectory.removeEmpty(path)
        try directory.rename("kept", to: name, replacing: false)
        #expect(self.error { _ = try vault.enrolDevice() }?.code == .alreadyExists)
    }

    @Test func aCopiedVaultGetsKeysOfItsOwn() throws {
        let first = try made()
        let second = try opened("second")
        let storage = second.storage(service: "s")
        // The error names the path where the key was expected, and the search creates no key.
        let missing = error { _ = try storage.retrieve(for: "first when-unlocked-this-device-only") }
        let path = sandbox.path.appending("second").appending(second.identifier + ".device").string
        #expect(missing?.code == .wrongDevice && missing?.underlying == "no device key at \(path)")
        #expect(
            try !SmallFile.exists(sandbox.path.appending("second").appending(second.identifier + ".device")))
        #expect(error { try storage.store(token: "x", for: "x") }?.code == .unsupportedPolicy)

        let device = try second.enrolDevice()
        #expect(device.isThisDevice && device.items == 0 && device.id.wholeMatch(of: #/[0-9a-f]{32}/#) != nil)
        #expect(try second.status().device == .enrolled)
        #expect(storage.defaultPolicy == .whenUnlockedThisDeviceOnly)
        try storage.store(token: "of the second", for: "second")
        #expect(try storage.retrieve(for: "second") == "of the second")
        #expect(try storage.retrieve(for: "first when-unlocked") == "of the first")
        let old = error { _ = try storage.retrieve(for: "first when-unlocked-this-device-only") }
        #expect(old?.code == .wrongDevice)
        #expect(try storage.list().hiddenReasons == [.wrongDevice: 2])
        #expect(error { _ = try second.enrolDevice() }?.code == .alreadyExists)
        // The first device's items are not affected, even after the second device compacts.
        _ = try second.compact()
        #expect(
            try first.storage(service: "s").retrieve(for: "first when-unlocked-this-device-only")
                == "of the first")
        #expect(error { _ = try first.storage(service: "s").retrieve(for: "second") }?.code == .wrongDevice)
        let devices = try first.devices()
        #expect(devices.map(\.items) == [2, 1] && devices.map(\.isThisDevice) == [true, false])
        #expect(devices.last?.id == device.id && devices.last?.enrolled == device.enrolled)
        // The second device stays enrolled and finds its key again.
        #expect(try opened("second").storage(service: "s").retrieve(for: "second") == "of the second")
        #expect(try first.verify().isClean)
    }

    @Test func aPassphraseBringsItsClassToTheDevice() throws {
        _ = try made(Self.passphrase)
        let keyed = try opened("second", Self.passphrase)
        _ = try keyed.addSlot(keyFile, scope: .all)
        // A device that was enrolled without the passphrase supports every policy but one.
        let second = try opened("second")
        _ = try second.enrolDevice()
        #expect(!second.storage(service: "s").supportedPolicies.contains(.whenPasscodeSetThisDeviceOnly))
        let again = try opened("second", Self.passphrase)
        #expect(try again.enrolDevice().isThisDevice)
        #expect(again.storage(service: "s").supportedPolicies == Set(AccessPolicy.allCases))
        try again.storage(service: "s").store(
            token: "fake", for: "pin", policy: .whenPasscodeSetThisDeviceOnly)
        #expect(try opened("second", Self.passphrase).storage(service: "s").retrieve(for: "pin") == "fake")
        #expect(error { _ = try again.enrolDevice() }?.code == .alreadyExists)
        #expect(try again.devices().count == 2)
    }

    @Test func aRemovedDeviceTakesItsItemsAlong() throws {
        let first = try made()
        let second = try opened("second")
        _ = try second.enrolDevice()
        try second.storage(service: "s").store(token: "of the second", for: "second")
        let lost = try #require(try second.devices().first { !$0.isThisDevice })
        #expect(error { _ = try second.removeDevice("00") }?.code == .notFound)
        #expect(try second.removeDevice(lost.id) == 2)
        #expect(try second.devices().count == 1 && second.status().items == 3)
        #expect(try second.storage(service: "s").list().hidden == 0)
        // On the removed device the items are absent rather than another device's, because their keys are
        // destroyed.
        #expect(try first.storage(service: "s").retrieve(for: "first when-unlocked-this-device-only") == nil)
        #expect(try first.status().device == .notEnrolled)
        // A handle there writes nothing under keys that are gone.
        #expect(
            error { try first.storage(service: "s").store(token: "x", for: "x") }?.code == .unsupportedPolicy)
        // The removed device can enrol again with its key. This device can be removed too, and then its key
        // is deleted.
        _ = try first.enrolDevice()
        try first.storage(service: "s").store(token: "again", for: "first when-unlocked-this-device-only")
        #expect(
            try first.storage(service: "s").retrieve(for: "first when-unlocked-this-device-only") == "again")
        let own = try #require(try second.devices().first { $0.isThisDevice })
        #expect(try second.removeDevice(own.id) == 1)
        let names = try PosixDirectory(sandbox.path.appending("second")).names()
        #expect(!names.contains { $0.hasSuffix(".device") })
        #expect(try second.verify().isClean)
    }

    @Test func aLockedHolderWritesNothingForARemovedDevice() throws {
        _ = try made()
        let locked = try opened("state")
        locked.lock()
        let policy = AccessPolicy.afterFirstUnlockThisDeviceOnly
        let storage = locked.storage(service: "s")
        try storage.store(token: "still", for: "k", policy: policy)
        let second = try opened("second")
        _ = try second.enrolDevice()
        try storage.store(token: "still", for: "k2", policy: policy)
        let lost = try #require(try second.devices().first { !$0.isThisDevice })
        #expect(try second.removeDevice(lost.id) == 4)
        #expect(error { try storage.store(token: "x", for: "k3", policy: policy) }?.code == .locked)
    }

    @Test func itTakesTheRootAndAStateDirectory() throws {
        let vault = try made(.recoveryKey(RecoveryKey()))
        _ = try vault.addSlot(keyFile)
        #expect(error { _ = try opened("second").enrolDevice() }?.code == .notPermitted)
        #expect(
            try !SmallFile.exists(sandbox.path.appending("second").appending(vault.identifier + ".device")))
        let device = try #require(try vault.devices().first)
        #expect(error { _ = try opened("second").removeDevice(device.id) }?.code == .notPermitted)
        _ = try vault.addSlot(Self.passphrase)
        var nowhere = sandbox.configuration
        nowhere.stateDirectory = nil
        let without = try BlockingFileVault.open(at: sandbox.vault, configuration: nowhere)
        #expect(error { _ = try without.enrolDevice() }?.code == .locked)
        try without.unlock(with: Self.passphrase)
        #expect(error { _ = try without.enrolDevice() }?.code == .unavailable)
        let missing = error {
            _ = try without.storage(service: "s").retrieve(for: "first when-unlocked-this-device-only")
        }
        #expect(missing?.underlying == "no state directory was given")
        // The devices are known before unlocking as well.
        #expect(
            try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration).devices()
                .map { [$0.id, $0.items.map(String.init)] } == [[device.id, nil]])
        for number in 2...7 { _ = try opened("device \(number)", Self.passphrase).enrolDevice() }
        #expect(error { _ = try opened("device 8", Self.passphrase).enrolDevice() }?.code == .tooManySlots)
    }

    @Test func aTaskRunsCallsOnTheVaultsThread() async throws {
        _ = try made()
        let vault = FileVault(try opened("second"))
        let device = try await vault.run { try $0.enrolDevice() }
        #expect(try await vault.run { try $0.devices() }.map(\.isThisDevice) == [false, true])
        let removed = try await vault.run { (vault) throws(TokenStorageError) in
            try vault.removeDevice(device.id)
        }
        #expect(removed == 0)
        vault.close()
        let error = await #expect(throws: TokenStorageError.self) { try await vault.run { try $0.devices() } }
        #expect(error?.code == .closed)
    }

    /// A damaged device key is no key, and enrolment makes another.
    @Test func aDamagedKeyIsReplaced() throws {
        let vault = try made()
        let state = try PosixDirectory(sandbox.path.appending("state"))
        let name = vault.identifier + ".device"
        try state.open(name, .readWrite).write([0xff], at: 30)
        let again = try opened("state")
        #expect(try again.status().device == .notEnrolled)
        _ = try again.enrolDevice()
        #expect(try again.devices().map(\.isThisDevice) == [false, true])
        try again.storage(service: "s").store(token: "fake", for: "new")
        #expect(try opened("state").storage(service: "s").retrieve(for: "new") == "fake")
    }

    /// A vault that got a new root while a device was away: its set comes along when it returns.
    @Test func aDeviceThatWasAwayTakesTheNewRoot() throws {
        let first = try made(Self.passphrase)
        let recovery = RecoveryKey()
        _ = try first.addSlot(.recoveryKey(recovery))
        let second = try opened("second", Self.passphrase)
        _ = try second.enrolDevice()
        try second.storage(service: "s").store(token: "of the second", for: "second")
        second.close()
        let new = Secret(utf8: "other fake words")
        let old = Secret(utf8: "not a real passphrase")
        var report = try first.rotatePassphrase(old, replacedBy: new, keeping: [.recoveryKey(recovery)])
        #expect(report.resealed == 5 && report.remaining == 1)
        // The second rotation comes before the other device has opened the vault.
        report = try first.rotatePassphrase(new, replacedBy: old, keeping: [.recoveryKey(recovery)])
        #expect(report.remaining == 1)
        // The recovery key reads the items of the other device. Only the passphrase renews its keys.
        let careful = try opened("second", .recoveryKey(recovery))
        #expect(try careful.storage(service: "s").retrieve(for: "second") == "of the second")
        #expect(try careful.itemsUnderOlderKeys(try careful.session()) == 1)
        careful.close()
        let back = try opened("second", Self.passphrase)
        #expect(try back.storage(service: "s").retrieve(for: "second") == "of the second")
        _ = try back.compact()
        #expect(try back.itemsUnderOlderKeys(try back.session()) == 0)
        #expect(try back.storage(service: "s").retrieve(for: "second") == "of the second")
        #expect(
            try first.storage(service: "s").retrieve(for: "first when-passcode-set-this-device-only")
                == "of the first")
    }
}
