internal import Synchronization

extension InMemoryVault {
    /// What an item is, and where it was stored.
    struct Item {
        var metadata: TokenMetadata
        var secret: Secret
        var isOfOriginalDevice: Bool
    }

    /// Everything in the vault. Whoever holds it holds the vault's lock.
    struct State {
        // By service, then by key; both compare by bytes.
        var items: [TokenKey: [TokenKey: Item]] = [:]
        var lockState: LockState = .unlocked
        var device: Device = .original
        var hasPasscode = true
        var isClosed = false
        private var sequence: UInt64 = 0

        /// The policies whose promise can be kept now.
        var supportedPolicies: Set<AccessPolicy> {
            Set(
                AccessPolicy.allCases.filter { policy in
                    if policy.isThisDeviceOnly, device == .another { return false }
                    return policy != .whenPasscodeSetThisDeviceOnly || hasPasscode
                })
        }

        /// Why an item may not be touched now; `nil` when it may.
        func refusal(of item: Item) -> TokenStorageError.Code? {
            let isForeign = item.isOfOriginalDevice != device.isOriginal
            if item.metadata.policy.isThisDeviceOnly, isForeign { return .wrongDevice }
            return refusal(of: item.metadata.policy)
        }

        /// Why items of `policy` may not be written now; `nil` when they may.
        func refusal(of policy: AccessPolicy) -> TokenStorageError.Code? {
            lockState == .unlocked || policy.isReadableAfterFirstUnlock ? nil : .locked
        }

        /// The generation of the next commit.
        mutating func nextGeneration(_ operation: String) throws(TokenStorageError) -> Generation {
            guard sequence < 1 << 53 - 1 else {
                throw TokenStorageError(
                    .resourcesExhausted, operation: operation, backend: InMemoryVault.backend)
            }
            sequence += 1
            return Generation(rawValue: sequence)
        }
    }

    /// Runs `body` alone with the state of a vault that is open.
    func withState<Result>(
        _ call: Validation, _ body: (inout State) throws(TokenStorageError) -> Result
    ) throws(TokenStorageError) -> Result {
        try state.withLock { (state) throws(TokenStorageError) -> Result in
            guard !state.isClosed else {
                throw TokenStorageError(.closed, operation: call.operation, backend: call.backend)
            }
            return try body(&state)
        }
    }

    /// The same, and something was unlocked.
    func withUnlockedState<Result>(
        _ call: Validation, _ body: (inout State) throws(TokenStorageError) -> Result
    ) throws(TokenStorageError) -> Result {
        try withState(call) { (state) throws(TokenStorageError) -> Result in
            guard state.lockState != .locked else {
                throw TokenStorageError(.locked, operation: call.operation, backend: call.backend)
            }
            return try body(&state)
        }
    }
}
