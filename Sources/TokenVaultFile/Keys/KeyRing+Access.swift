internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultCrypto

// The access that the held keys give.
extension KeyRing {
    /// The keys of every class that is held.
    var held: [ClassKeys] { state.withLock { Array($0.classes.values) } }

    /// The policies that items can be stored with.
    var supportedPolicies: Set<AccessPolicy> {
        let facts = facts
        return Set(
            AccessPolicy.allCases.filter { policy in
                if policy == .whenPasscodeSetThisDeviceOnly {
                    return facts.isEnrolled && facts.hasPasscodeSlot && facts.hasPepper
                }
                return !policy.isThisDeviceOnly || facts.isEnrolled
            })
    }

    /// The key of the keybag's code for every holder; `nil` once every key was wiped.
    var holderCode: SymmetricKey? { state.withLock { $0.holderCode } }

    /// The roots, while unlocked.
    var roots: Roots? { state.withLock { $0.roots } }

    /// Returns the keys that a stored frame names.
    func access(policy number: UInt8, setTag: UInt64, version: UInt32) -> Access {
        guard let policy = AccessPolicy(number: number) else { return .unsupported }
        return state.withLock { state in
            let name = ClassName(policy: number, setTag: setTag, version: version)
            let isDoubtful = state.facts.isStale && policy == .whenPasscodeSetThisDeviceOnly
            if let keys = state.classes[name], !isDoubtful { return .keys(keys) }
            if state.isWiped { return .closed }
            let facts = state.facts
            if policy.isThisDeviceOnly {
                // The keys of the set were removed with its device.
                if !facts.setTags.contains(setTag) { return facts.isStale ? .locked : .destroyed }
                if setTag != facts.deviceTag || !facts.isEnrolled { return .wrongDevice }
            }
            if policy == .whenPasscodeSetThisDeviceOnly {
                if facts.isStale { return .locked }
                if !facts.hasPasscodeSlot { return .destroyed }
                if !facts.hasPepper { return .wrongDevice }
                return state.roots == nil ? .locked : .notPermitted
            }
            return state.refusal(of: policy)
        }
    }

    /// Returns the keys to write an item of `policy` with.
    func accessForWriting(_ policy: AccessPolicy) -> Access {
        state.withLock { state in
            if state.isWiped { return .closed }
            if state.facts.isStale, policy == .whenPasscodeSetThisDeviceOnly { return .locked }
            if let keys = state.current[policy] { return .keys(keys) }
            if state.facts.isStale { return .locked }
            if policy.isThisDeviceOnly, !state.facts.isEnrolled { return .unsupported }
            if policy == .whenPasscodeSetThisDeviceOnly {
                if !state.facts.hasPasscodeSlot || !state.facts.hasPepper { return .unsupported }
                return state.roots == nil ? .locked : .notPermitted
            }
            return state.refusal(of: policy)
        }
    }
}
