public import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

extension KeyDerivationCost {
    /// Creates the cost of a slot.
    init(_ cost: PasswordHashCost) {
        self.init(passes: Int(clamping: cost.passes), memory: Int(clamping: cost.memory))
    }

    /// Returns the cost that takes about `target` on this machine: from the least one, 3 passes over 64 MiB,
    /// up to 3 GiB of work. Eight slots of that cost stay within what readers accept. Measures for a fraction
    /// of `target`. Takes at most half of the memory that the process's control groups allow. Throws
    /// `resourcesExhausted` when not even the least cost can be had.
    public static func calibrated(
        for target: Duration = .milliseconds(750)
    ) throws(TokenStorageError) -> KeyDerivationCost {
        let allowance = MemoryAllowance.remaining()
        let salt = Random.bytes(PasswordHash.saltLength)
        let start = ContinuousClock.now
        do throws(KeybagKeys.Failure) {
            _ = try KeybagKeys.passphraseKey(
                Secret(utf8: "only to be measured"), salt: salt, cost: PasswordHashCost.minimum)
        } catch {
            throw KeybagKeys.error(for: error)
        }
        return scaled(measured: start.duration(to: .now), to: target, allowance: allowance)
    }

    /// Returns the cost for `target`, when the least cost took `measured`. Memory grows first, since memory
    /// makes guessing expensive. Passes grow when there is no more memory.
    static func scaled(
        measured: Duration, to target: Duration, allowance: UInt64?
    ) -> KeyDerivationCost {
        let least = minimum
        let factor = max(1, target / max(measured, .milliseconds(1)))
        // In MiB, for round numbers.
        let work = Int(min(Double(least.passes * least.memory >> 20) * factor, 3 * 1_024).rounded())
        let most = min(1_024, allowance.map { Int(clamping: $0 / 2) >> 20 } ?? 1_024)
        let memory = max(least.memory >> 20, min(work / least.passes, most) / 16 * 16)
        return KeyDerivationCost(
            passes: min(12, max(least.passes, work / memory)), memory: memory << 20)
    }
}
