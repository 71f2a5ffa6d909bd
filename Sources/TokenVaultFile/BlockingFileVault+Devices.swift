internal import Synchronization
internal import SystemPackage
public import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// A device with keys in a vault for its *this device only* items.
public struct VaultDevice: Hashable, Sendable, Identifiable {
    /// The device's identifier: 32 random hexadecimal digits, made at enrolment.
    public let id: String
    /// The date of enrolment.
    public let enrolled: Date
    /// Whether this is the device whose state directory the vault was opened with.
    public let isThisDevice: Bool
    /// The number of the device's items in the vault; `nil` before the first unlock.
    public let items: Int?
}

// Devices: each has a set of class keys, wrapped with a key that the device keeps outside the vault.
extension BlockingFileVault {
    /// Returns the devices that the vault has keys for, in the order of their enrolment. Before the first
    /// unlock, the list comes from the unauthenticated keybag. Throws `closed`, and the system's failures.
    public func devices() throws(TokenStorageError) -> [VaultDevice] {
        try during("device list") { () throws(TokenStorageError) in
            try checkUsable()
            let (session, known) = state.withLock { ($0.session, $0.keybag) }
            let keybag = if let session { try currentKeybag(session) } else { known }
            let own = try secretStore?.load().device?.identifier
            var counts: [UInt64: Int]?
            if let session {
                counts = try session.log.entries().0.reduce(into: [:]) { $0[$1.1.setTag, default: 0] += 1 }
            }
            return keybag.sets.filter { $0.device != Keybag.ClassSet.portable }.map { set in
                VaultDevice(
                    set, isThisDevice: set.device == own,
                    items: counts.map { $0[DeviceKey.setTag(of: set.device)] ?? 0 })
            }
        }
    }

    /// Gives this device its own keys in the vault, so that *this device only* items can be stored here.
    /// Items of other devices stay theirs. Makes the device key in the configuration's state directory,
    /// unless the directory has one already. Makes a missing state directory.
    ///
    /// When unlocked with a passphrase, the call also makes ``AccessPolicy/whenPasscodeSetThisDeviceOnly``
    /// possible here, and may be repeated for that. The vault must be unlocked (`locked`) by a slot that
    /// opens everything (`notPermitted`). Throws `alreadyExists` when there is nothing to add, `unavailable`
    /// without a state directory, `tooManySlots` beyond seven devices.
    public func enrolDevice() throws(TokenStorageError) -> VaultDevice {
        try during("device enrol") { () throws(TokenStorageError) in
            let session = try session()
            let roots = try heldRoots(session)
            // A crash may have left items of a removed device, which must not become readable under a key
            // used again.
            try session.removeDestroyedItems()
            let store = try stateStore(session)
            var enrolled: Keybag.ClassSet?
            try replaceKeybag(session, roots: roots) { (keybag) throws(TokenStorageError) in
                // Under the writers' lock: if two processes enrol at once, one makes the key and both use it.
                let device = try store.deviceOrNew()
                try enrol(device, in: &keybag, roots: roots)
                enrolled = keybag.sets.first { $0.device == device.identifier }
            }
            guard let enrolled else { throw .file(.internalError) }
            // Removing a copy elsewhere must spare this device's keys.
            if try store.place() == nil, let place = location.absolutePath { try store.rememberPlace(place) }
            let tag = DeviceKey.setTag(of: enrolled.device)
            let items = try session.log.entries().0.count { $0.1.setTag == tag }
            return VaultDevice(enrolled, isThisDevice: true, items: items)
        }
    }

    /// Removes a device's keys from the vault, and with them its items, which no key opens from then on.
    /// Returns the number of these items. An older copy of the file still opens on that device. For this
    /// device, its key in the state directory is removed too, unless this file is a copy of a vault elsewhere
    /// on the device. The vault must be unlocked (`locked`) by a slot that opens everything (`notPermitted`).
    /// Throws `notFound` when no device has the identifier.
    public func removeDevice(_ id: VaultDevice.ID) throws(TokenStorageError) -> Int {
        try during("device remove") { () throws(TokenStorageError) in
            let session = try session()
            let roots = try heldRoots(session)
            var removed: Keybag.ClassSet?
            try replaceKeybag(session, roots: roots) { (keybag) throws(TokenStorageError) in
                let index = keybag.sets.firstIndex {
                    $0.device != Keybag.ClassSet.portable && $0.device.hexadecimal == id
                }
                guard let index else {
                    throw .file(.notFound, .missing(.device))
                }
                let set = keybag.sets[index]
                keybag.removeDevice(set)
                // First the key goes, durably, then the classes, while no other process enrols.
                if let store = secretStore, try !isCopy(), try store.load().device?.identifier == set.device {
                    try store.removeDevice()
                }
                removed = set
            }
            guard let removed else { throw .file(.internalError) }
            let tag = DeviceKey.setTag(of: removed.device)
            let items = try session.log.entries().0.count { $0.1.setTag == tag }
            try session.removeDestroyedItems()
            return items
        }
    }

    private func enrol(
        _ device: DeviceKey, in keybag: inout Keybag, roots: KeyRing.Roots
    ) throws(TokenStorageError) {
        let isFirst = !keybag.sets.contains { $0.device == device.identifier }
        let vault = keybag.vault
        // A device that returns has a class of the same name, which must not reuse an earlier version.
        let version = keybag.freshVersion
        if isFirst {
            guard keybag.sets.count < Keybag.maximumSets else {
                throw .file(.tooManySlots, .slots(.devicesFull))
            }
            let secrets = KeybagKeys.DeviceSecrets(device: device)
            let policies: [AccessPolicy] = [.whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly]
            let keys = try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                try policies.map { (policy: AccessPolicy) throws(KeybagKeys.Failure) in
                    try KeybagKeys.freshClass(
                        policy, version: version, vault: vault, roots: roots, secrets: secrets)
                }
            }
            // An earlier enrolment that ended is not taken for this one, whatever the clock says.
            let ended = keybag.removedDevices.filter { $0.device == device.identifier }.map(\.enrolled).max()
            keybag.sets.append(
                Keybag.ClassSet(
                    device: device.identifier,
                    enrolled: max(
                        VaultFormat.milliseconds(configuration.clock()), ended.map { $0 + 1 } ?? .min),
                    keys: keys))
        }
        let passcode = AccessPolicy.whenPasscodeSetThisDeviceOnly.number
        let set = keybag.sets.first { $0.device == device.identifier }
        if roots.passcode != nil, keybag.hasPassphrase, set?.olderRoots == nil,
            set?.keys.contains(where: { $0.policy == passcode }) == false
        {
            try addPasscodeClass(to: &keybag, roots: roots)
        } else if !isFirst {
            throw .file(.alreadyExists, .exists(.enrolment))
        }
    }

    /// Returns this device's state store, and makes a missing state directory.
    private func stateStore(_ session: VaultSession) throws(TokenStorageError) -> StateStore {
        if let store = secretStore { return store }
        guard let path = configuration.stateDirectory else {
            throw .file(.unavailable, .missing(.stateDirectory))
        }
        let directory = try onDisk { () throws(SystemFailure) in
            try PosixDirectory.makeAll(path)
            return try PosixDirectory(path)
        }
        let store = StateStore(directory: directory, vault: session.ring.vault)
        state.withLock { $0.secretStore = store }
        session.use(store)
        return store
    }

    /// Returns whether this file is a copy of a vault that this device knows elsewhere: the device's state is
    /// then that vault's. Throws when the system could not even look.
    func isCopy() throws(TokenStorageError) -> Bool {
        if case .elsewhere = try findPlace() { return true }
        return false
    }
}

extension VaultDevice {
    fileprivate init(_ set: Keybag.ClassSet, isThisDevice: Bool, items: Int?) {
        self.init(
            id: set.device.hexadecimal,
            enrolled: Date(timeIntervalSince1970: Double(set.enrolled) / 1_000), isThisDevice: isThisDevice,
            items: items)
    }
}
