internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The limit on deriving the key of a passphrase.
struct DerivationLimit: Sendable {
    /// The deadline for the key; `nil` for none.
    var deadline: Deadline?
    /// The budget that the memory comes from; `nil` for as much as the key needs.
    var budget: DerivationBudget?
    /// The function that derives the key.
    var hash: PasswordHash.Derivation = PasswordHash.derive

    /// No limit.
    static let none = DerivationLimit()

    /// Throws `time` when the key would not be there in time: deriving it cannot be interrupted.
    func requireTime(for cost: PasswordHashCost) throws(KeybagKeys.Failure) {
        guard let deadline else { return }
        let needed = PasswordHash.leastTime(for: cost)
        if needed > deadline.remaining { throw .time(needed: needed) }
    }

    /// Takes the memory, to be held until the key is derived; `nil` when there is no budget for it. Throws
    /// `budget`.
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
    /// The limit of each derivation.
    var derivationLimit: DerivationLimit {
        DerivationLimit(deadline: deadline, budget: derivationBudget, hash: passwordHash)
    }
}
