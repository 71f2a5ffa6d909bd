import Synchronization
import TokenVault
import TokenVaultPlatform

/// A keyring in memory, with the failures that a test chooses.
final class MemoryKeyring: KeyringItems {
    private struct State {
        var keys: [String: Secret] = [:]
        var labels: [String: String] = [:]
        var failure: TokenStorageError.Code?
        var forgets = false
    }

    private let state = Mutex(State())

    /// The keys, by vault and name with a dot in between.
    var keys: [String: Secret] { state.withLock { $0.keys } }
    var labels: [String: String] { state.withLock { $0.labels } }

    /// The one key of a vault; `nil` unless there is exactly one.
    func key(of vault: String) -> Secret? {
        let keys = keys.filter { $0.key.hasPrefix("\(vault).") }
        return keys.count == 1 ? keys.values.first : nil
    }

    /// Fails every call from now on; `nil` none.
    func fail(with code: TokenStorageError.Code?) { state.withLock { $0.failure = code } }
    /// Says that keys are stored, and does not store them.
    func forget() { state.withLock { $0.forgets = true } }
    /// Puts a key there as another program would.
    func plant(_ key: Secret, vault: String) { state.withLock { $0.keys["\(vault).planted"] = key } }

    func add(_ key: Secret, vault: String, name: String, label: String) throws(TokenStorageError) {
        let isTaken = try call("add") { state in
            if state.forgets { return false }
            guard state.keys["\(vault).\(name)"] == nil else { return true }
            state.keys["\(vault).\(name)"] = key
            state.labels["\(vault).\(name)"] = label
            return false
        }
        if isTaken { throw TokenStorageError(.conflict, operation: "add", backend: "keyring") }
    }

    func keys(vault: String) throws(TokenStorageError) -> [String: Secret] {
        try call("lookup") { state in
            let own = state.keys.filter { $0.key.hasPrefix("\(vault).") }
            return Dictionary(
                uniqueKeysWithValues: own.map { (String($0.key.dropFirst(vault.count + 1)), $0.value) })
        }
    }

    func delete(vault: String, name: String) throws(TokenStorageError) -> Bool {
        try call("delete") { $0.keys.removeValue(forKey: "\(vault).\(name)") != nil }
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

/// A keyring that lets two callers look before either adds.
final class MeetingKeyring: KeyringItems {
    private let keyring: MemoryKeyring
    private let looked = Monitor(0)

    init(_ keyring: MemoryKeyring) { self.keyring = keyring }

    func add(_ key: Secret, vault: String, name: String, label: String) throws(TokenStorageError) {
        looked.wait { $0 >= 2 ? () : nil }
        try keyring.add(key, vault: vault, name: name, label: label)
    }

    func keys(vault: String) throws(TokenStorageError) -> [String: Secret] {
        defer { looked.announce { $0 += 1 } }
        return try keyring.keys(vault: vault)
    }

    func delete(vault: String, name: String) throws(TokenStorageError) -> Bool {
        try keyring.delete(vault: vault, name: name)
    }
}
