public import TokenVault

extension AgentTokenStorage.Blocking: BlockingItemHistory {
    public func history(of key: TokenKey) throws(TokenStorageError) -> TokenListing {
        try check(key, "history")
        return try vault.listing(.history(service: service, key: key), "history")
    }

    @discardableResult
    public func undo(
        _ key: TokenKey, to generation: Generation? = nil
    ) throws(TokenStorageError) -> TokenCommit {
        try check(key, "undo")
        return try vault.perform(.undo(service: service, key: key, to: generation), "undo", isWrite: true) {
            (reader, _) throws(WireError) in try reader.commit()
        }
    }

    private func check(_ key: TokenKey, _ operation: String) throws(TokenStorageError) {
        let rules = Validation(operation: operation, backend: AgentEndpoint.backend)
        try rules.check(service: service)
        try rules.check(key: key)
    }
}

extension AgentTokenStorage {
    /// Returns the values of `key`, newest first: `FileTokenStorage.Blocking.history(of:)`.
    public func history(of key: TokenKey) async throws(TokenStorageError) -> TokenListing {
        try await run(StorageCall("history", .read)) { (blocking) throws(TokenStorageError) in
            try blocking.history(of: key)
        }
    }

    /// Stores an earlier value of `key` again: `FileTokenStorage.Blocking.undo(_:to:)`.
    @discardableResult
    public func undo(
        _ key: TokenKey, to generation: Generation? = nil
    ) async throws(TokenStorageError) -> TokenCommit {
        try await run(StorageCall("undo", .write)) { (blocking) throws(TokenStorageError) in
            try blocking.undo(key, to: generation)
        }
    }
}
