internal import Synchronization

extension InMemoryVault {
    /// What an item is, and where it was stored. An object, so that a read retains one thing and copies nothing else.
    final class Item: Sendable {
        let metadata: TokenMetadata
        let secret: Secret
        let isOfOriginalDevice: Bool

        init(metadata: TokenMetadata, secret: Secret, isOfOriginalDevice: Bool) {
            self.metadata = metadata
            self.secret = secret
            self.isOfOriginalDevice = isOfOriginalDevice
        }
    }

    /// Where the items of a service are; see ``State/place(of:)``.
    struct Place {
        fileprivate let index: Int
    }

    /// Everything in the vault. Whoever holds it holds the vault's lock.
    struct State {
        // By place, then by key. A place stays its service's, so that calls need not look for it each time.
        private var items: [[TokenKey: Item]] = []
        private var services: [TokenKey: Place] = [:]
        var lockState: LockState = .unlocked
        var device: Device = .original
        var hasPasscode = true
        var isClosed = false
        private var sequence: UInt64 = 0

        /// The place of a service, made when it is asked for first.
        mutating func place(of service: String) -> Place {
            let name = TokenKey(service)
            if let place = services[name] { return place }
            let place = Place(index: items.count)
            items.append([:])
            services[name] = place
            return place
        }

        /// The items of a service, by key.
        subscript(place: Place) -> [TokenKey: Item] {
            get { items[place.index] }
            _modify { yield &items[place.index] }
        }

        /// The items of every service.
        var allItems: some Sequence<Item> { items.lazy.flatMap(\.values) }

        /// Every service that was asked for, and its place.
        var places: some Sequence<(key: TokenKey, value: Place)> { services }

        /// Forgets every item.
        mutating func removeAll() {
            for index in items.indices { items[index] = [:] }
        }

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
            // Not `!=`, which compares the raw values, which are texts.
            guard !(state.lockState == .locked) else {
                throw TokenStorageError(.locked, operation: call.operation, backend: call.backend)
            }
            return try body(&state)
        }
    }
}
