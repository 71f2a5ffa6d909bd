import ProgramSupport
import TokenVault

extension JSONWriter {
    /// The `policyOrigin` of an item whose policy a session without the root key chose.
    static let limitedSession = "limited-session"

    /// Writes the members of an item in the contract's order. Writes the value only if `bytes` is given.
    mutating func item(_ item: TokenMetadata, value bytes: [UInt8]? = nil) {
        member("service", item.service)
        member("key", item.key.name)
        if let bytes { value(bytes) }
        member("policy", item.policy.rawValue)
        if item.isPolicyFromLimitedSession { member("policyOrigin", Self.limitedSession) }
        member("label", item.label)
        if !item.attributes.isEmpty {
            object("attributes") { json in
                for (name, value) in item.attributes { json.member(name, value) }
            }
        }
        member("created", Timestamp.text(item.created))
        member("modified", Timestamp.text(item.modified))
        member("expires", item.expires.map { Timestamp.text($0) })
        member("generation", item.generation)
    }

    /// Writes `"name": number`, or nothing without a generation.
    mutating func member(_ name: String, _ generation: Generation?) {
        member(name, generation.map { Int(clamping: $0.rawValue) })
    }

    /// Writes a slot, with its recovery key when the key is new.
    mutating func slot(_ slot: VaultSlot, recoveryKey: Secret? = nil) {
        object { json in
            json.member("id", slot.id)
            json.member("kind", slot.kind.rawValue)
            json.member("created", Timestamp.text(slot.created))
            json.member("scope", slot.scope.rawValue)
            if let cost = slot.cost {
                json.object("cost") { json in
                    json.member("passes", cost.passes)
                    json.member("memory", cost.memory)
                }
            }
            if let recoveryKey { json.member("recoveryKey", recoveryKey) }
        }
    }
}
