/// When, and on which device, an item can be read.
///
/// The names are those of Apple's Data Protection. In the file vault each policy is a class of keys:
/// what a policy forbids cannot be decrypted, rather than being refused by a check.
public enum AccessPolicy: String, CaseIterable, Hashable, Sendable, Codable {
    /// Readable while unlocked; moves to another device with the passphrase.
    case whenUnlocked = "when-unlocked"
    /// Readable from the first unlock on, also when locked again, until the holder of the keys ends or
    /// the machine reboots; moves to another device.
    case afterFirstUnlock = "after-first-unlock"
    /// Readable while unlocked, on this device only. The default.
    case whenUnlockedThisDeviceOnly = "when-unlocked-this-device-only"
    /// Readable from the first unlock on, on this device only.
    case afterFirstUnlockThisDeviceOnly = "after-first-unlock-this-device-only"
    /// Readable while unlocked, on this device only, and only while the vault has a passphrase:
    /// removing the last passphrase destroys these items.
    case whenPasscodeSetThisDeviceOnly = "when-passcode-set-this-device-only"

    /// Whether items stay on the device that stored them.
    public var isThisDeviceOnly: Bool {
        switch self {
        case .whenUnlocked, .afterFirstUnlock: false
        case .whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly,
            .whenPasscodeSetThisDeviceOnly:
            true
        }
    }

    /// Whether items stay readable when the vault is locked after it was unlocked once.
    public var isReadableAfterFirstUnlock: Bool {
        self == .afterFirstUnlock || self == .afterFirstUnlockThisDeviceOnly
    }
}

/// What a storage can be asked for now.
public enum LockState: String, Hashable, Sendable, Codable {
    /// Never unlocked by this holder: every call throws ``TokenStorageError/Code/locked``.
    case locked
    /// Locked after it was unlocked: after-first-unlock items can be read and written.
    case afterFirstUnlock
    /// Everything the unlock method gives can be read and written.
    case unlocked
}
