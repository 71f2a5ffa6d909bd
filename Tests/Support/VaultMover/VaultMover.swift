import Glibc
import Synchronization
import SystemPackage
import TokenVault

/// Moves the items of a service from `from.vault` to `to.vault` and kills itself before or after one of its
/// calls: `VaultMover DIRECTORY SERVICE STEP`. Steps count from 0, two for each call.
@main
struct VaultMover {
    static func main() async {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, let step = Int(arguments[3]) else {
            print("usage: VaultMover DIRECTORY SERVICE STEP")
            exit(64)
        }
        do {
            let directory = FilePath(arguments[1])
            let counter = StepCounter(killsAt: step)
            let ends = try ["from.vault", "to.vault"].map { name in
                let vault = try BlockingFileVault.open(
                    at: directory.appending(name),
                    configuration: FileVaultConfiguration(stateDirectory: directory.appending("state")))
                try vault.unlock(
                    with: .keyFile(Secret(utf8: "not a real key: 0123456789abcdef0123456789abcdef")))
                return MortalStorage(
                    base: FileTokenStorage(vault, service: arguments[2]), counter: counter)
            }
            let summary = await TokenMigration(
                from: ends[0], to: ends[1], options: .init(deletesAtSource: true)
            ).run()
            print(summary)
            exit(summary.isComplete ? 0 : 1)
        } catch {
            print(error)
            exit(1)
        }
    }
}

/// Counts the steps and ends the process at one of them.
final class StepCounter: Sendable {
    private let steps = Mutex(0)
    private let last: Int

    init(killsAt last: Int) { self.last = last }

    func step() {
        let now = steps.withLock { steps in
            defer { steps += 1 }
            return steps
        }
        if now == last { kill(getpid(), SIGKILL) }
    }
}

/// A storage whose process may end around each call.
struct MortalStorage: TokenStorage {
    let base: any TokenStorage
    let counter: StepCounter

    var service: String { base.service }
    var supportedPolicies: Set<AccessPolicy> { base.supportedPolicies }
    var defaultPolicy: AccessPolicy { base.defaultPolicy }
    func lockState() async throws(TokenStorageError) -> LockState { try await base.lockState() }
    func changes() -> TokenChanges { base.changes() }
    func deleteAll() async throws(TokenStorageError) -> Int { try await base.deleteAll() }
    func secret(for key: TokenKey) async throws(TokenStorageError) -> Secret? {
        try await base.secret(for: key)
    }
    func metadata(for key: TokenKey) async throws(TokenStorageError) -> TokenMetadata? {
        try await base.metadata(for: key)
    }
    func item(for key: TokenKey) async throws(TokenStorageError) -> TokenItem? {
        counter.step()
        defer { counter.step() }
        return try await base.item(for: key)
    }
    func list(_ query: TokenQuery) async throws(TokenStorageError) -> TokenListing {
        counter.step()
        defer { counter.step() }
        return try await base.list(query)
    }
    func commit(_ changes: [TokenChange]) async throws(TokenStorageError) -> TokenCommit {
        counter.step()
        defer { counter.step() }
        return try await base.commit(changes)
    }
}
