/// The conditions under which an item can be read: the lock state, and the device.
///
/// The names are those of Apple's Data Protection. In the file vault each policy has a class key of its own.
/// Without that class key an item cannot be decrypted: no check at run time is involved.
public enum AccessPolicy: String, CaseIterable, Hashable, Sendable, Codable {
    /// Readable while unlocked; moves to another device with the passphrase.
    case whenUnlocked = "when-unlocked"
    /// Readable from the first unlock on, also when the vault is locked again. Ends when the process that
    /// holds the keys exits or the machine reboots. Moves to another device.
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

/// The lock state of a storage, which decides the calls that can succeed.
public enum LockState: String, Hashable, Sendable, Codable {
    /// Not unlocked yet by this holder: every call throws ``TokenStorageError/Code/locked``.
    case locked
    /// Locked after an unlock: after-first-unlock items can be read and written.
    case afterFirstUnlock
    /// Unlocked: everything that the unlock method opens can be read and written.
    case unlocked
}
