/// What the backends are called.
enum BackendName {
    static let memory = "memory"
    static let file = "file"
    static let agent = "agent"
    static let keyring = "secret-service"
}
