import Glibc
import HookedStorage
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
                return HookedStorage(base: FileTokenStorage(vault, service: arguments[2])) { _, _, _ in
                    counter.step()
                }
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
