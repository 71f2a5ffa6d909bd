import SystemPackage
import TokenVault
import VaultAgent

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// Where tokens are kept. What the file, the agent and the keyring are at comes from the environment, which
/// `Scripts/bench.sh` sets.
enum Backend: String, CaseIterable {
    case memory, file, agent
    case secretService = "secret-service"

    /// How many items there are beside the ones an operation makes. A keyring is written anew for each store.
    static let items = 100

    /// A storage of `items` items of `size` bytes, named `item-0` and on.
    func storage(items: Int = items, size: Int) throws -> any BlockingTokenStorage {
        let storage = try empty()
        _ = try storage.deleteAll()
        let secret = Secret.filler(size)
        _ = try storage.commit((0..<items).map { .store(secret, for: TokenKey("item-\($0)")) })
        return storage
    }

    /// The same storage for tasks.
    func sharedStorage() throws -> any TokenStorage {
        switch self {
        case .memory: InMemoryTokenStorage(service: "benchmark")
        case .file: FileTokenStorage(try Place.vault("shared"), service: "benchmark")
        case .agent: AgentVault(try Place.agentVault()).storage(service: "benchmark")
        case .secretService: Place.secretService().storage(service: "benchmark")
        }
    }

    private func empty() throws -> any BlockingTokenStorage {
        switch self {
        case .memory: InMemoryTokenStorage(service: "benchmark").blocking
        case .file: try Place.vault("items").storage(service: "benchmark")
        case .agent: try Place.agentVault().storage(service: "benchmark")
        case .secretService: Place.secretService().storage(service: "benchmark").blocking
        }
    }
}

/// What the benchmarks of one run share, below the directory that the environment names.
enum Place {
    static let key = UnlockMethod.keyFile(Secret(utf8: "a benchmark's key, which is no secret at all"))
    static let passphrase = UnlockMethod.passphrase(Secret(utf8: "not a real passphrase"))

    static var directory: FilePath { FilePath(environment("TOKENVAULT_BENCHMARK_DIRECTORY")) }

    static var stateDirectory: FilePath { directory.appending("state") }

    static var configuration: FileVaultConfiguration {
        FileVaultConfiguration(stateDirectory: stateDirectory, keyDerivationCost: .minimum)
    }

    /// Where the agent is.
    static var agent: AgentEndpoint {
        AgentEndpoint(directory: FilePath(environment("TOKENVAULT_BENCHMARK_AGENT")))
    }

    static func path(_ name: String) -> FilePath { directory.appending("\(name).vault") }

    /// An unlocked vault of that name, which is made when there is none yet; `fill` is then given it.
    static func vault(
        _ name: String, method: UnlockMethod = key, fill: (BlockingFileVault) throws -> Void = { _ in }
    ) throws -> BlockingFileVault {
        do throws(TokenStorageError) {
            let vault = try BlockingFileVault.open(at: path(name), configuration: configuration)
            try vault.unlock(with: method)
            return vault
        } catch {
            guard error.code == .unavailable else { throw error }
            let vault = try BlockingFileVault.create(
                at: path(name), unlockMethod: method, configuration: configuration)
            try fill(vault)
            return vault
        }
    }

    /// A vault of that name that the agent holds unlocked.
    static func agentVault(
        _ name: String = "agent", method: UnlockMethod = key
    ) throws -> BlockingAgentVault {
        try vault(name, method: method).close()
        let vault = BlockingAgentVault(at: path(name), agent: agent)
        try vault.unlock(with: method, stateDirectory: stateDirectory, lockingAfter: nil)
        return vault
    }

    static func secretService() -> SecretService {
        SecretService(
            configuration: SecretServiceConfiguration(
                bus: .address(environment("DBUS_SESSION_BUS_ADDRESS")), prompting: .never))
    }

    private static func environment(_ name: String) -> String {
        ProcessInfo.processInfo.environment[name] ?? "/nonexistent: \(name) is not set; run `make bench`"
    }
}

extension Secret {
    /// A value of `size` bytes.
    static func filler(_ size: Int) -> Secret { Secret([UInt8](repeating: 0x61, count: size)) }
}

/// The sizes of values, and what they are called.
let sizes = [(64, "64B"), (1_024, "1KiB"), (16_384, "16KiB")]
