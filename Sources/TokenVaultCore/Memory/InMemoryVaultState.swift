internal import Synchronization

extension InMemoryVault {
    /// An item and where it was stored. A class, so that a read retains one object and copies nothing else.
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

    /// The place of a service's items; see ``State/place(of:)``.
    struct Place {
        fileprivate let index: Int
    }

    /// Everything in the vault. Access needs the vault's lock.
    struct State {
        // By place, then by key. The place of a service never changes, so that calls need not look it up each
        // time.
        private var items: [[TokenKey: Item]] = []
        private var services: [TokenKey: Place] = [:]
        var lockState: LockState = .unlocked
        var device: Device = .original
        var hasPasscode = true
        var isClosed = false
        private var sequence: UInt64 = 0

        /// Returns the place of a service, and makes it at the first request.
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

        /// Every service that was requested, with its place.
        var places: some Sequence<(key: TokenKey, value: Place)> { services }

        /// Removes every item.
        mutating func removeAll() {
            for index in items.indices { items[index] = [:] }
        }

        /// The policies that can be enforced now.
        var supportedPolicies: Set<AccessPolicy> {
            Set(
                AccessPolicy.allCases.filter { policy in
                    if policy.isThisDeviceOnly, device == .another { return false }
                    return policy != .whenPasscodeSetThisDeviceOnly || hasPasscode
                })
        }

        /// Returns the error code for touching an item now; `nil` when that is allowed.
        func refusal(of item: Item) -> TokenStorageError.Code? {
            let isForeign = item.isOfOriginalDevice != device.isOriginal
            if item.metadata.policy.isThisDeviceOnly, isForeign { return .wrongDevice }
            return refusal(of: item.metadata.policy)
        }

        /// Returns the error code for writing items of `policy` now; `nil` when that is allowed.
        func refusal(of policy: AccessPolicy) -> TokenStorageError.Code? {
            lockState == .unlocked || policy.isReadableAfterFirstUnlock ? nil : .locked
        }

        /// Returns the generation of the next commit.
        mutating func nextGeneration(_ operation: String) throws(TokenStorageError) -> Generation {
            guard sequence < 1 << 53 - 1 else {
                throw TokenStorageError(
                    .resourcesExhausted, operation: operation, backend: InMemoryVault.backend)
            }
            sequence += 1
            return Generation(rawValue: sequence)
        }
    }

    /// Runs `body` with exclusive access to the state of an open vault. Throws `closed`.
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

    /// Runs `body` in the same way. Also throws `locked` when nothing was unlocked yet.
    func withUnlockedState<Result>(
        _ call: Validation, _ body: (inout State) throws(TokenStorageError) -> Result
    ) throws(TokenStorageError) -> Result {
        try withState(call) { (state) throws(TokenStorageError) -> Result in
            // Not `!=`, which compares the raw values, which are strings.
            guard !(state.lockState == .locked) else {
                throw TokenStorageError(.locked, operation: call.operation, backend: call.backend)
            }
            return try body(&state)
        }
    }
}
