internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

extension Secret {
    /// Creates a secret with the JSON of `value`, as `store(encoding:for:)` stores it. Throws
    /// `encodingFailed`.
    public init(encoding value: some Encodable) throws(TokenStorageError) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        do {
            var data = try encoder.encode(value)
            defer { data.resetBytes(in: 0..<data.count) }
            self.init(data)
        } catch {
            // The reason is left out on purpose: it can quote the value.
            throw TokenStorageError(.encodingFailed, operation: "store", backend: "storage")
        }
    }

    /// Decodes these bytes as the JSON of a `Value`. Throws `decodingFailed`.
    package func decode<Value: Decodable>(_ type: Value.Type) throws(TokenStorageError) -> Value {
        var data = unsafe bytes.withUnsafeBytes { unsafe Data($0) }
        defer { data.resetBytes(in: 0..<data.count) }
        do {
            return try JSONDecoder().decode(type, from: data)
        } catch {
            throw TokenStorageError(.decodingFailed, operation: "retrieve", backend: "storage")
        }
    }
}

extension TokenCommit {
    /// Returns the generation of a commit that always writes.
    package func made(_ operation: String) throws(TokenStorageError) -> Generation {
        guard let generation else {
            throw TokenStorageError(.internalError, operation: operation, backend: "storage")
        }
        return generation
    }
}
