import Synchronization
import TokenVault

/// A keyring in memory, with the failures that a test chooses.
final class MemoryKeyring: KeyringItems {
    private struct State {
        var keys: [String: Secret] = [:]
        var labels: [String: String] = [:]
        var failure: TokenStorageError.Code?
        var forgets = false
    }

    private let state = Mutex(State())

    var keys: [String: Secret] { state.withLock { $0.keys } }
    var labels: [String: String] { state.withLock { $0.labels } }

    /// Fails every call from now on; `nil` none.
    func fail(with code: TokenStorageError.Code?) { state.withLock { $0.failure = code } }
    /// Says that keys are stored, and does not store them.
    func forget() { state.withLock { $0.forgets = true } }
    /// Puts a key there as another program would.
    func plant(_ key: Secret, vault: String) { state.withLock { $0.keys[vault] = key } }

    func store(_ key: Secret, vault: String, label: String) throws(TokenStorageError) {
        try call("store") { state in
            if state.forgets { return }
            state.keys[vault] = key
            state.labels[vault] = label
        }
    }

    func key(vault: String) throws(TokenStorageError) -> Secret? {
        try call("lookup") { $0.keys[vault] }
    }

    func delete(vault: String) throws(TokenStorageError) -> Bool {
        try call("delete") { $0.keys.removeValue(forKey: vault) != nil }
    }

    private func call<Result>(
        _ operation: String, _ body: (inout State) -> Result
    ) throws(TokenStorageError) -> Result {
        try state.withLock { (state) throws(TokenStorageError) -> Result in
            if let code = state.failure {
                throw TokenStorageError(code, operation: operation, backend: "keyring")
            }
            return body(&state)
        }
    }
}
