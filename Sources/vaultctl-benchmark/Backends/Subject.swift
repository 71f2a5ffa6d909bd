import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent

/// A storage that is measured, and nobody else's.
final class Subject {
    let name: String
    let storage: any BlockingTokenStorage
    /// How many items it is measured with at most.
    let limit: Int
    /// How many items are stored at once to fill it.
    let batch: Int
    /// How many there are.
    var items = 0
    /// To be called before the first is stored; with true where it was not.
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

    /// Lets go of the storage, and of what is in it where that is not in the scratch directory. `progress` is told how much of
    /// that is gone, 0 to 1.
    func end(_ progress: (Double) -> Void = { _ in }) { clear(progress) }

    /// One in memory.
    static func memory() -> Subject {
        Subject(BackendName.memory, InMemoryTokenStorage(service: service).blocking) { _ in }
    }

    /// A vault in `scratch`, opened here.
    static func file(in scratch: FilePath, _ label: String) throws(CommandFailure) -> Subject {
        let vault = try makeVault(scratch.appending("file-\(label).vault"), key(), scratch)
        return Subject(BackendName.file, vault.storage(service: service)) { _ in vault.close() }
    }

    /// A vault in `scratch`, held by the agent at `place`.
    static func agent(
        in scratch: FilePath, _ label: String, at place: AgentEndpoint
    ) throws(CommandFailure) -> Subject {
        let path = scratch.appending("agent-\(label).vault")
        let key = key()
        try makeVault(path, key, scratch).close()
        // One that does not answer is not waited for as long as a person's own would be.
        let vault = BlockingAgentVault(at: path, agent: place, timeout: .seconds(10))
        try calling(BackendName.agent) { () throws(TokenStorageError) in
            try vault.unlock(with: key, stateDirectory: state(in: scratch), lockingAfter: nil)
        }
        return Subject(BackendName.agent, vault.storage(service: service)) { _ in
            _ = try? vault.release()
            vault.close()
        }
    }

    /// The person's keyring, in a service of its own whose items are deleted at the end. Nobody is asked to unlock it.
    ///
    /// It gets `limit` items at most. `leftovers` has that service for as long as items are in it.
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

    /// Deletes what is there, one after the other: each makes the keyring write all that is left, so that all of them together
    /// may take minutes, and none of them takes as long as a call may.
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

    /// A key file's contents: deriving a key from a passphrase would be measured by nobody and take most of a second.
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

/// So many bytes that nobody can guess.
func randomBytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255) } }
