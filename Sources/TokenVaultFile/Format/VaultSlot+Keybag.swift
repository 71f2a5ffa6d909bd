internal import TokenVaultCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

extension VaultSlot {
    /// Creates the public view of a keybag's slot.
    init(_ slot: Keybag.Slot) {
        let kind: Kind =
            switch slot.kind {
            case .passphrase: .passphrase
            case .keyFile: .keyFile
            case .secretService: .secretService
            case .recovery: .recovery
            }
        self.init(
            id: Int(slot.identifier), kind: kind, scope: slot.scope == .all ? .all : .afterFirstUnlock,
            created: Date(timeIntervalSince1970: Double(slot.created) / 1_000),
            cost: slot.kind == .passphrase ? KeyDerivationCost(slot.cost) : nil)
    }
}
