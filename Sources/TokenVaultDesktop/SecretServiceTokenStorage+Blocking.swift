public import TokenVaultCore

extension SecretServiceTokenStorage {
    /// The view of a service for code that cannot wait. Every call runs on the caller's thread, within
    /// ``SecretServiceConfiguration/timeout``.
    ///
    /// It supports `whenUnlocked` alone: a keyring enforces no other policy. The file vault enforces the
    /// others. Asking for the lock state never prompts the user. Every call throws `unavailable` when there is
    /// no libsecret, no bus, no service or no keyring.
    public struct Blocking: BlockingTokenStorage {
        /// The keyring behind the storage.
        public let secretService: SecretService
        public let service: String
        /// Whether this storage keeps keys of vaults. Its items are closed to other callers: a deleted or
        /// renamed key makes its vault unopenable.
        var keepsVaultKeys = false
        /// The call that a task waits for and can cancel. Without one each call has its own.
        var call: BusCall?

        public var supportedPolicies: Set<AccessPolicy> { [.whenUnlocked] }
        public var defaultPolicy: AccessPolicy { .whenUnlocked }

        public func lockState() throws(TokenStorageError) -> LockState {
            try run("lockState") { (call, _) throws(TokenStorageError) in
                try secretService.lockState(for: call)
            }
        }

        public func secret(for key: TokenKey) throws(TokenStorageError) -> Secret? {
            try read("retrieve", key) { (access) throws(TokenStorageError) in try access.secret(service, key)
            }
        }

        public func item(for key: TokenKey) throws(TokenStorageError) -> TokenItem? {
            try read("retrieve", key) { (access) throws(TokenStorageError) in try access.item(service, key) }
        }

        public func metadata(for key: TokenKey) throws(TokenStorageError) -> TokenMetadata? {
            try read("info", key) { (access) throws(TokenStorageError) in try access.metadata(service, key) }
        }

        public func list(_ query: TokenQuery) throws(TokenStorageError) -> TokenListing {
            try run("list") { (call, rules) throws(TokenStorageError) in
                try rules.check(query: query)
                return try secretService.withKeyring(call) { (access) throws(TokenStorageError) in
                    try access.list(service, query)
                }
            }
        }

        @discardableResult
        public func commit(_ changes: [TokenChange]) throws(TokenStorageError) -> TokenCommit {
            try run(CommitRules.operation(changes)) { (call, rules) throws(TokenStorageError) in
                try rules.check(changes: changes)
                do {
                    try rules.check(
                        policiesOf: changes, supported: supportedPolicies, defaultPolicy: defaultPolicy)
                } catch {
                    throw TokenStorageError.secretService(.unsupportedPolicy, .policyUnsupported(.fileVault))
                }
                return try secretService.commit(changes, to: service, for: call)
            }
        }

        @discardableResult
        public func deleteAll() throws(TokenStorageError) -> Int {
            try run("delete") { (call, _) throws(TokenStorageError) in
                try secretService.deleteAll(of: service, for: call)
            }
        }

        /// Unlocks every keyring that has an item of the service, with a prompt if that is allowed. Throws
        /// `locked` when a keyring stays locked.
        func unlockWhatIsFound() throws(TokenStorageError) {
            try run("list") { (call, _) throws(TokenStorageError) in
                try secretService.withKeyring(call) { (access) throws(TokenStorageError) in
                    try access.requireUnlocked(try access.search(service, nil).locked)
                }
            }
        }

        private func read<Value>(
            _ operation: String, _ key: TokenKey,
            _ body: (KeyringAccess) throws(TokenStorageError) -> Value
        ) throws(TokenStorageError) -> Value {
            try run(operation) { (call, rules) throws(TokenStorageError) in
                try rules.check(key: key)
                return try secretService.withKeyring(call, body)
            }
        }

        /// Runs `body` within the time limit of a call, if the service is usable.
        private func run<Value>(
            _ operation: String, _ body: (BusCall, Validation) throws(TokenStorageError) -> Value
        ) throws(TokenStorageError) -> Value {
            let call = call ?? BusCall(timeout: secretService.configuration.timeout)
            return try during(operation) { () throws(TokenStorageError) in
                let rules = Validation(
                    operation: operation, backend: TokenStorageError.secretServiceBackend)
                try rules.check(service: service)
                guard keepsVaultKeys || !Bytes.areEqual(service, SecretServiceVaultKeys.service) else {
                    throw .secretService(.invalidArgument, .limit(.reservedService))
                }
                return try body(call, rules)
            }
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
