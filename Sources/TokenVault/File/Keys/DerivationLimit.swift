internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// What deriving the key of a passphrase may take.
struct DerivationLimit: Sendable {
    /// When the key has to be there; `nil` for no such time.
    var deadline: Deadline?
    /// Whose memory it takes; `nil` for as much as it needs.
    var budget: DerivationBudget?

    /// No limit.
    static let none = DerivationLimit()

    /// Throws `time` when the key would not be there in time: deriving it cannot be interrupted.
    func requireTime(for cost: PasswordHashCost) throws(KeybagKeys.Failure) {
        guard let deadline else { return }
        let needed = PasswordHash.leastTime(for: cost)
        if needed > deadline.remaining { throw .time(needed: needed) }
    }

    /// Takes the memory, to be kept until the key is there; `nil` when there is no budget for it. Throws `budget`.
    func memory(for cost: PasswordHashCost) throws(KeybagKeys.Failure) -> DerivationBudget.Share? {
        guard let budget else { return nil }
        do throws(DerivationBudget.Refusal) {
            return try budget.take(cost.memory, until: deadline)
        } catch {
            throw .budget(needed: cost.memory, error)
        }
    }
}

extension FileVaultConfiguration {
    /// What each derivation may take.
    var derivationLimit: DerivationLimit { DerivationLimit(deadline: deadline, budget: derivationBudget) }
}
