import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent

/// A storage made for the benchmark alone.
final class Subject {
    let name: String
    let storage: any BlockingTokenStorage
    /// The largest number of items to measure with.
    let limit: Int
    /// The number of items that one commit stores while filling the storage.
    let batch: Int
    /// The number of items in the storage.
    var items = 0
    /// Runs before the first store, with false. Runs again with true when that store left no item.
    let begin: (_ wasNone: Bool) -> Void
    private let clear: (_ progress: (Double) -> Void) -> Void

    private init(
        _ name: String, _ storage: any BlockingTokenStorage, limit: Int = .max, batch: Int = 500,
        begin: @escaping (Bool) -> Void = { _ in }, clear: @escaping (_ progress: (Double) -> Void) -> Void
    ) {
        self.name = name
        self.storage = storage
        self.limit = limit
        self.batch = batch
        self.begin = begin
        self.clear = clear
    }

    /// Releases the storage, and deletes its items where they are outside the scratch directory. `progress`
    /// receives the deleted share, 0 to 1.
    func end(_ progress: (Double) -> Void = { _ in }) { clear(progress) }

    /// Creates a storage in memory.
    static func memory() -> Subject {
        Subject(BackendName.memory, InMemoryTokenStorage(service: service).blocking) { _ in }
    }

    /// Creates a vault in `scratch` and opens it in this process.
    static func file(in scratch: FilePath, _ label: String) throws(CommandFailure) -> Subject {
        let vault = try makeVault(scratch.appending("file-\(label).vault"), key(), scratch)
        return Subject(BackendName.file, vault.storage(service: service)) { _ in vault.close() }
    }

    /// Creates a vault in `scratch` that the agent at `place` holds.
    static func agent(
        in scratch: FilePath, _ label: String, at place: AgentEndpoint
    ) throws(CommandFailure) -> Subject {
        let path = scratch.appending("agent-\(label).vault")
        let key = key()
        try makeVault(path, key, scratch).close()
        // The timeout is shorter than for the user's own agent, in case this agent does not answer.
        let vault = BlockingAgentVault(at: path, agent: place, timeout: .seconds(10))
        try calling(BackendName.agent) { () throws(TokenStorageError) in
            try vault.unlock(with: key, stateDirectory: state(in: scratch), lockingAfter: nil)
        }
        return Subject(BackendName.agent, vault.storage(service: service)) { _ in
            _ = try? vault.release()
            vault.close()
        }
    }

    /// Creates a storage in the user's keyring, in a service of its own whose items are deleted at the end.
    /// No prompt asks the user to unlock the keyring.
    ///
    /// The storage gets at most `limit` items. `leftovers` contains the service for as long as items are in
    /// it.
    static func keyring(atMost limit: Int, _ leftovers: Leftovers) -> Subject {
        let mark = String(UInt64.random(in: 0...UInt64.max), radix: 36)
        let service = "vaultctl benchmark \(mark)"
        let configuration = SecretServiceConfiguration(prompting: .never, timeout: .seconds(10))
        let storage = SecretService(configuration: configuration).storage(service: service).blocking
        return Subject(
            BackendName.keyring, storage, limit: limit, batch: 20,
            begin: { wasNone in
                if wasNone { leftovers.remove(service) } else { leftovers.add(service) }
            },
            clear: { progress in if (try? empty(storage, progress)) != nil { leftovers.remove(service) } })
    }

    /// Deletes the items one by one. Each delete makes the keyring write all remaining items. The whole run
    /// may take minutes, but each single call stays within its timeout.
    private static func empty(
        _ storage: some BlockingTokenStorage, _ progress: (Double) -> Void
    ) throws(TokenStorageError) {
        let keys = try storage.list(.all).items.map(\.key)
        for (number, key) in keys.enumerated() {
            progress(Double(number) / Double(keys.count))
            try storage.delete(for: key)
        }
    }

    private static let service = "benchmark"

    /// The contents of a key file. Deriving a key from a passphrase would take most of a second and is not
    /// measured.
    private static func key() -> UnlockMethod { .keyFile(Secret(randomBytes(32))) }

    private static func state(in scratch: FilePath) -> FilePath { scratch.appending("state") }

    private static func makeVault(
        _ path: FilePath, _ key: UnlockMethod, _ scratch: FilePath
    ) throws(CommandFailure) -> BlockingFileVault {
        try calling(BackendName.file) { () throws(TokenStorageError) in
            try BlockingFileVault.create(
                at: path, unlockMethod: key,
                configuration: FileVaultConfiguration(
                    stateDirectory: state(in: scratch), keyDerivationCost: .minimum))
        }
    }
}

/// Returns `count` random bytes.
func randomBytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255) } }
