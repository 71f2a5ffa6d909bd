internal import TokenVaultCore

/// The number of a policy in the file.
extension AccessPolicy {
    /// 1 to 5, in the order of the declaration; never changed.
    var number: UInt8 {
        switch self {
        case .whenUnlocked: 1
        case .afterFirstUnlock: 2
        case .whenUnlockedThisDeviceOnly: 3
        case .afterFirstUnlockThisDeviceOnly: 4
        case .whenPasscodeSetThisDeviceOnly: 5
        }
    }

    init?(number: UInt8) {
        guard let policy = AccessPolicy.allCases.first(where: { $0.number == number }) else { return nil }
        self = policy
    }
}
