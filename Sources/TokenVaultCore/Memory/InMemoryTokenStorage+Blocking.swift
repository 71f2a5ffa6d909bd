internal import Synchronization

extension InMemoryTokenStorage {
    /// An in-memory storage for code that cannot wait.
    ///
    /// It supports all policies, with two exceptions. This-device-only policies are missing on a device that
    /// is not enrolled in the vault. The when-passcode-set policy is missing while there is no passcode. The
    /// default is when unlocked, on this device only.
    public struct Blocking: BlockingTokenStorage {
        let vault: InMemoryVault
        /// The service that the keys belong to.
        public let service: String
        /// The place of the service's items; `nil` when the service is not usable.
        private let place: InMemoryVault.Place?

        init(vault: InMemoryVault, service: String) {
            (self.vault, self.service) = (vault, service)
            place = NameRules.fits(service) ? vault.state.withLock { $0.place(of: service) } : nil
        }

        public var supportedPolicies: Set<AccessPolicy> { vault.state.withLock { $0.supportedPolicies } }
        public var defaultPolicy: AccessPolicy { .whenUnlockedThisDeviceOnly }

        public func lockState() throws(TokenStorageError) -> LockState {
            try vault.withState(try call("lockState").rules) { $0.lockState }
        }

        public func secret(for key: TokenKey) throws(TokenStorageError) -> Secret? {
            try stored(key, "secret") { $0.secret }
        }

        public func item(for key: TokenKey) throws(TokenStorageError) -> TokenItem? {
            try stored(key, "item") { TokenItem(metadata: $0.metadata, secret: $0.secret) }
        }

        public func metadata(for key: TokenKey) throws(TokenStorageError) -> TokenMetadata? {
            try stored(key, "metadata") { $0.metadata }
        }

        public func list(_ query: TokenQuery) throws(TokenStorageError) -> TokenListing {
            let (call, place) = try call("list")
            try call.check(query: query)
            var listing = try vault.withUnlockedState(call) { state in
                var listing = TokenListing(items: [])
                for item in state[place].values {
                    if state.refusal(of: item) != nil {
                        listing.hidden += 1
                    } else if query.matches(item.metadata) {
                        listing.items.append(item.metadata)
                    }
                }
                return listing
            }
            listing.items.sort { $0.key < $1.key }
            return listing
        }

        @discardableResult
        public func commit(_ changes: [TokenChange]) throws(TokenStorageError) -> TokenCommit {
            let (call, place) = try call(CommitRules.operation(changes))
            try call.check(changes: changes)
            let now = vault.clock()
            return try vault.withUnlockedState(call) { (state) throws(TokenStorageError) in
                try vault.commit(
                    changes, service: service, at: place, defaultPolicy: defaultPolicy, now: now,
                    state: &state,
                    call: call)
            }
        }

        @discardableResult
        public func deleteAll() throws(TokenStorageError) -> Int {
            let (call, place) = try call("deleteAll")
            return try vault.withUnlockedState(call) { (state) throws(TokenStorageError) in
                try vault.deleteAll(service: service, at: place, state: &state, call: call)
            }
        }

        private func call(
            _ operation: String
        ) throws(TokenStorageError) -> (rules: Validation, place: InMemoryVault.Place) {
            let call = Validation(operation: operation, backend: InMemoryVault.backend)
            guard let place else {
                try call.check(service: service)
                throw TokenStorageError(.internalError, operation: operation, backend: InMemoryVault.backend)
            }
            return (call, place)
        }

        /// Returns the result of `part` for an item. `part` takes only the fields that the read returns, so
        /// that nothing else is copied.
        private func stored<Part>(
            _ key: TokenKey, _ operation: String, _ part: (InMemoryVault.Item) -> Part
        ) throws(TokenStorageError) -> Part? {
            // An item that is found and readable has a valid name, so that no other check is needed.
            let found: InMemoryVault.Item? = vault.state.withLock { state in
                guard let place = self.place, !state.isClosed, !(state.lockState == .locked),
                    let item = state[place][key],
                    state.refusal(of: item) == nil
                else { return nil }
                return item
            }
            if let found { return part(found) }
            let (call, place) = try call(operation)
            try call.check(key: key)
            return try vault.withUnlockedState(call) { (state) throws(TokenStorageError) -> Part? in
                guard let item = state[place][key] else { return nil }
                if let code = state.refusal(of: item) {
                    throw TokenStorageError(code, operation: operation, backend: InMemoryVault.backend)
                }
                return part(item)
            }
        }
    }
}
