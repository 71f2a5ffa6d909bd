/// The calls that auth code makes.
extension TokenStorage {
    /// Stores `token` under `key`, replacing the stored secret, and returns the new generation. Details that
    /// are not given keep their values; on a new item they take their defaults. Throws as `commit(_:)`.
    @discardableResult
    public func store(
        token: String, for key: TokenKey, policy: AccessPolicy? = nil, label: String? = nil,
        attributes: TokenAttributes? = nil, expiry: TokenDetails.Expiry? = nil
    ) async throws(TokenStorageError) -> Generation {
        let details = TokenDetails(policy: policy, label: label, attributes: attributes, expiry: expiry)
        return try await store(Secret(utf8: token), for: key, details: details)
    }

    /// Stores `secret` under `key`, replacing the stored secret, and returns the new generation. Throws as
    /// `commit(_:)`.
    @discardableResult
    public func store(
        _ secret: Secret, for key: TokenKey, details: TokenDetails = TokenDetails()
    ) async throws(TokenStorageError) -> Generation {
        try await commit([.store(secret, for: key, details: details)]).made("store")
    }

    /// Returns the text stored under `key`, or `nil` when the key is absent. Throws `notText` when the bytes
    /// are not UTF-8, and as `secret(for:)`.
    public func retrieve(for key: TokenKey) async throws(TokenStorageError) -> String? {
        guard let secret = try await secret(for: key) else { return nil }
        guard let text = secret.unprotectedText() else {
            throw TokenStorageError(.notText, operation: "retrieve", backend: "storage")
        }
        return text
    }

    /// Deletes `key` and returns whether the key was present. Throws as `commit(_:)`.
    @discardableResult
    public func delete(for key: TokenKey) async throws(TokenStorageError) -> Bool {
        try await commit([.delete(key)]).existed.first ?? false
    }

    /// Stores `secret` only if the key has the generation `expected` (`nil`: only if the key is absent), and
    /// returns the new generation. Throws `conflict` with the current generation, and as `commit(_:)`.
    @discardableResult
    public func compareAndStore(
        _ secret: Secret, for key: TokenKey, expected: Generation?,
        details: TokenDetails = TokenDetails()
    ) async throws(TokenStorageError) -> Generation {
        let expectation: TokenChange.Expectation = expected.map { .generation($0) } ?? .absent
        let change = TokenChange.store(secret, for: key, details: details, expecting: expectation)
        return try await commit([change]).made("compareAndStore")
    }

    /// Deletes `key` only if it has the generation `expected`. Returns false when the key is already absent.
    /// Throws `conflict` when the key has another generation, and as `commit(_:)`.
    @discardableResult
    public func compareAndDelete(
        for key: TokenKey, expected: Generation
    ) async throws(TokenStorageError) -> Bool {
        do {
            return try await commit([.delete(key, expecting: .generation(expected))]).existed.first ?? false
        } catch {
            if error.code == .conflict, error.generation == nil { return false }
            throw error
        }
    }

    /// Returns whether an item is stored under `key`. Throws as `metadata(for:)`.
    public func contains(for key: TokenKey) async throws(TokenStorageError) -> Bool {
        try await metadata(for: key) != nil
    }

    /// Returns every item of the service that can be shown. Throws as `list(_:)`.
    public func list() async throws(TokenStorageError) -> TokenListing { try await list(.all) }

    /// Stores `value` as JSON under `key`. Throws `encodingFailed`, and as `commit(_:)`.
    @discardableResult
    public func store(
        encoding value: some Encodable, for key: TokenKey, details: TokenDetails = TokenDetails()
    ) async throws(TokenStorageError) -> Generation {
        try await store(Secret(encoding: value), for: key, details: details)
    }

    /// Returns the value of type `Value` stored as JSON under `key`, or `nil` when the key is absent. Throws
    /// `decodingFailed`, and as `secret(for:)`.
    public func retrieve<Value: Decodable>(
        _ type: Value.Type, for key: TokenKey
    ) async throws(TokenStorageError) -> Value? {
        guard let secret = try await secret(for: key) else { return nil }
        return try secret.decode(type)
    }
}

/// The calls that auth code makes, for code that cannot wait.
extension BlockingTokenStorage {
    /// Stores `token` under `key`, replacing the stored secret, and returns the new generation. Details that
    /// are not given keep their values; on a new item they take their defaults. Throws as `commit(_:)`.
    @discardableResult
    public func store(
        token: String, for key: TokenKey, policy: AccessPolicy? = nil, label: String? = nil,
        attributes: TokenAttributes? = nil, expiry: TokenDetails.Expiry? = nil
    ) throws(TokenStorageError) -> Generation {
        let details = TokenDetails(policy: policy, label: label, attributes: attributes, expiry: expiry)
        return try store(Secret(utf8: token), for: key, details: details)
    }

    /// Stores `secret` under `key`, replacing the stored secret, and returns the new generation. Throws as
    /// `commit(_:)`.
    @discardableResult
    public func store(
        _ secret: Secret, for key: TokenKey, details: TokenDetails = TokenDetails()
    ) throws(TokenStorageError) -> Generation {
        try commit([.store(secret, for: key, details: details)]).made("store")
    }

    /// Returns the text stored under `key`, or `nil` when the key is absent. Throws `notText` when the bytes
    /// are not UTF-8, and as `secret(for:)`.
    public func retrieve(for key: TokenKey) throws(TokenStorageError) -> String? {
        guard let secret = try secret(for: key) else { return nil }
        guard let text = secret.unprotectedText() else {
            throw TokenStorageError(.notText, operation: "retrieve", backend: "storage")
        }
        return text
    }

    /// Deletes `key` and returns whether the key was present. Throws as `commit(_:)`.
    @discardableResult
    public func delete(for key: TokenKey) throws(TokenStorageError) -> Bool {
        try commit([.delete(key)]).existed.first ?? false
    }

    /// Stores `secret` only if the key has the generation `expected` (`nil`: only if the key is absent), and
    /// returns the new generation. Throws `conflict` with the current generation, and as `commit(_:)`.
    @discardableResult
    public func compareAndStore(
        _ secret: Secret, for key: TokenKey, expected: Generation?,
        details: TokenDetails = TokenDetails()
    ) throws(TokenStorageError) -> Generation {
        let expectation: TokenChange.Expectation = expected.map { .generation($0) } ?? .absent
        let change = TokenChange.store(secret, for: key, details: details, expecting: expectation)
        return try commit([change]).made("compareAndStore")
    }

    /// Deletes `key` only if it has the generation `expected`. Returns false when the key is already absent.
    /// Throws `conflict` when the key has another generation, and as `commit(_:)`.
    @discardableResult
    public func compareAndDelete(
        for key: TokenKey, expected: Generation
    ) throws(TokenStorageError) -> Bool {
        do {
            return try commit([.delete(key, expecting: .generation(expected))]).existed.first ?? false
        } catch {
            if error.code == .conflict, error.generation == nil { return false }
            throw error
        }
    }

    /// Returns whether an item is stored under `key`. Throws as `metadata(for:)`.
    public func contains(for key: TokenKey) throws(TokenStorageError) -> Bool {
        try metadata(for: key) != nil
    }

    /// Returns every item of the service that can be shown. Throws as `list(_:)`.
    public func list() throws(TokenStorageError) -> TokenListing { try list(.all) }

    /// Stores `value` as JSON under `key`. Throws `encodingFailed`, and as `commit(_:)`.
    @discardableResult
    public func store(
        encoding value: some Encodable, for key: TokenKey, details: TokenDetails = TokenDetails()
    ) throws(TokenStorageError) -> Generation {
        try store(Secret(encoding: value), for: key, details: details)
    }

    /// Returns the value of type `Value` stored as JSON under `key`, or `nil` when the key is absent. Throws
    /// `decodingFailed`, and as `secret(for:)`.
    public func retrieve<Value: Decodable>(
        _ type: Value.Type, for key: TokenKey
    ) throws(TokenStorageError) -> Value? {
        guard let secret = try secret(for: key) else { return nil }
        return try secret.decode(type)
    }
}
