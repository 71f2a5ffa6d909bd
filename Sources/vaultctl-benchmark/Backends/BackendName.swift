/// The names of the backends.
enum BackendName {
    static let memory = "memory"
    static let file = "file"
    static let agent = "agent"
    static let keyring = "secret-service"
}
