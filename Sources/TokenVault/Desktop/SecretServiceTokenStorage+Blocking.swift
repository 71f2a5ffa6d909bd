extension SecretServiceTokenStorage {
    /// The view of a service for code that cannot wait. Every call runs on the caller's thread, within
    /// ``SecretServiceConfiguration/timeout``.
    public struct Blocking: BlockingTokenStorage {
        /// The keyring behind the storage.
        public let secretService: SecretService
        /// The service.
        public let service: String
        /// Whether this storage keeps keys of vaults. Its items are closed to other callers: a deleted or
        /// renamed key makes its vault unopenable.
        var keepsVaultKeys = false

        /// See ``SecretServiceTokenStorage/supportedPolicies``.
        public var supportedPolicies: Set<AccessPolicy> { [.whenUnlocked] }
        /// See ``SecretServiceTokenStorage/defaultPolicy``.
        public var defaultPolicy: AccessPolicy { .whenUnlocked }

        /// See ``SecretServiceTokenStorage/lockState()``.
        public func lockState() throws(TokenStorageError) -> LockState {
            try run("lockState") { (call) throws(TokenStorageError) in try lockState(for: call) }
        }

        /// See ``TokenStorage/secret(for:)``.
        public func secret(for key: TokenKey) throws(TokenStorageError) -> Secret? {
            try run("retrieve") { (call) throws(TokenStorageError) in try secret(for: key, for: call) }
        }

        /// See ``TokenStorage/item(for:)``.
        public func item(for key: TokenKey) throws(TokenStorageError) -> TokenItem? {
            try run("retrieve") { (call) throws(TokenStorageError) in try item(for: key, for: call) }
        }

        /// See ``TokenStorage/metadata(for:)``.
        public func metadata(for key: TokenKey) throws(TokenStorageError) -> TokenMetadata? {
            try run("info") { (call) throws(TokenStorageError) in try metadata(for: key, for: call) }
        }

        /// See ``TokenStorage/list(_:)``.
        public func list(_ query: TokenQuery) throws(TokenStorageError) -> TokenListing {
            try run("list") { (call) throws(TokenStorageError) in try list(query, for: call) }
        }

        /// See ``TokenStorage/commit(_:)``.
        @discardableResult
        public func commit(_ changes: [TokenChange]) throws(TokenStorageError) -> TokenCommit {
            try run(CommitRules.operation(changes)) { (call) throws(TokenStorageError) in
                try commit(changes, for: call)
            }
        }

        /// See ``TokenStorage/deleteAll()``.
        @discardableResult
        public func deleteAll() throws(TokenStorageError) -> Int {
            try run("delete") { (call) throws(TokenStorageError) in try deleteAll(for: call) }
        }

        /// Unlocks every keyring that has an item of the service, with a prompt if that is allowed. Throws
        /// `locked` when a keyring stays locked.
        func unlockWhatIsFound() throws(TokenStorageError) {
            try run("list") { (call) throws(TokenStorageError) in
                try secretService.withKeyring(call) { (access) throws(TokenStorageError) in
                    try access.requireUnlocked(try access.search(service, nil).locked)
                }
            }
        }

        // MARK: - Within the time limit of a call

        func lockState(for call: BusCall) throws(TokenStorageError) -> LockState {
            try check("lockState")
            return try secretService.lockState(for: call)
        }

        func secret(for key: TokenKey, for call: BusCall) throws(TokenStorageError) -> Secret? {
            try check("retrieve").check(key: key)
            return try secretService.withKeyring(call) { (access) throws(TokenStorageError) in
                try access.secret(service, key)
            }
        }

        func item(for key: TokenKey, for call: BusCall) throws(TokenStorageError) -> TokenItem? {
            try check("retrieve").check(key: key)
            return try secretService.withKeyring(call) { (access) throws(TokenStorageError) in
                try access.item(service, key)
            }
        }

        func metadata(for key: TokenKey, for call: BusCall) throws(TokenStorageError) -> TokenMetadata? {
            try check("info").check(key: key)
            return try secretService.withKeyring(call) { (access) throws(TokenStorageError) in
                try access.metadata(service, key)
            }
        }

        func list(_ query: TokenQuery, for call: BusCall) throws(TokenStorageError) -> TokenListing {
            try check("list").check(query: query)
            return try secretService.withKeyring(call) { (access) throws(TokenStorageError) in
                try access.list(service, query)
            }
        }

        func commit(_ changes: [TokenChange], for call: BusCall) throws(TokenStorageError) -> TokenCommit {
            let rules = try check(CommitRules.operation(changes))
            try rules.check(changes: changes)
            do {
                try rules.check(
                    policiesOf: changes, supported: supportedPolicies, defaultPolicy: defaultPolicy)
            } catch {
                throw TokenStorageError.secretService(.unsupportedPolicy, .policyUnsupported(.fileVault))
            }
            return try secretService.commit(changes, to: service, for: call)
        }

        func deleteAll(for call: BusCall) throws(TokenStorageError) -> Int {
            try check("delete")
            return try secretService.deleteAll(of: service, for: call)
        }

        @discardableResult
        private func check(_ operation: String) throws(TokenStorageError) -> Validation {
            let rules = Validation(
                operation: operation, backend: TokenStorageError.secretServiceBackend)
            try rules.check(service: service)
            guard keepsVaultKeys || !Bytes.areEqual(service, SecretServiceVaultKeys.service) else {
                throw .secretService(.invalidArgument, .limit(.reservedService))
            }
            return rules
        }

        private func run<Value>(
            _ operation: String, _ body: (BusCall) throws(TokenStorageError) -> Value
        ) throws(TokenStorageError) -> Value {
            let call = BusCall(timeout: secretService.configuration.timeout)
            return try call.during(operation) { () throws(TokenStorageError) in try body(call) }
        }
    }
}

extension SecretService {
    /// Returns whether the keyring for new items is locked. Never prompts the user.
    func lockState(for call: BusCall) throws(TokenStorageError) -> LockState {
        try withKeyring(call, mayAsk: false) { (access) throws(TokenStorageError) in
            let method = access.link.propertyMethod(
                try access.home, "Locked", of: BusName.collection)
            let reply = try access.ask([method])[0]
            if case .error(let name, _) = reply, BusErrorName.isNoObject(name) {
                access.link.forgetCollection()
                throw KeyringAccess.collectionIsGone
            }
            return try KeyringLink.property(reply).bool == true ? .locked : .unlocked
        }
    }
}
