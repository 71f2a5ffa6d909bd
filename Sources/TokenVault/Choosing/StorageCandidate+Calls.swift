/// The calls of a candidate. Their errors name the candidate.
extension StorageCandidate {
    /// Returns whether the store is present or can be created.
    func presence() async throws(TokenStorageError) -> Presence {
        try await naming(probe)
    }

    /// Opens the storage of a service.
    func open(_ service: String) async throws(TokenStorageError) -> any TokenStorage {
        try await naming { () async throws(TokenStorageError) in try await storage(service) }
    }

    /// Runs `body`, and sets this candidate as the backend of its errors.
    func naming<Value>(
        _ body: () async throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value {
        do {
            return try await body()
        } catch {
            var error = error
            error.backend = name
            throw error
        }
    }
}
