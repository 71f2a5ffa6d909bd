/// The calls of a candidate, its name in their errors.
extension StorageCandidate {
    /// Whether the store is there.
    func presence() async throws(TokenStorageError) -> Presence {
        try await naming(probe)
    }

    /// The storage of a service.
    func open(_ service: String) async throws(TokenStorageError) -> any TokenStorage {
        try await naming { () async throws(TokenStorageError) in try await storage(service) }
    }

    /// Runs `body`, with this candidate as the backend in its errors.
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
