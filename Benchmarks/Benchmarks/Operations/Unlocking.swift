import Benchmark
import TokenVault
import VaultAgent

/// Unlocking with a passphrase at the smallest cost that is allowed, and with a key file; and locking.
func registerUnlocking() {
    for (name, method) in [("passphrase", Place.passphrase), ("key-file", Place.key)] {
        register("file-unlock-\(name)", iterations: 200) {
            try Place.vault(name, method: method)
        } operation: { vault, _ in
            vault.lock()
            try vault.unlock(with: method)
        }
    }
    registerLock("file-lock") {
        try Place.vault("key-file")
    } unlock: { vault in
        try vault.unlock(with: Place.key)
    } lock: { vault in
        vault.lock()
    }
    registerLock("agent-lock", prepare: Place.agentVault) { vault in
        try vault.unlock(with: Place.key, stateDirectory: Place.directory.appending("state"))
    } lock: { vault in
        _ = try vault.lock()
    }
}

/// Only the locking is timed.
private func registerLock<Subject>(
    _ name: String, prepare: @escaping () throws -> Subject, unlock: @escaping (Subject) throws -> Void,
    lock: @escaping (Subject) throws -> Void
) {
    var configuration = Benchmark.defaultConfiguration
    configuration.maxIterations = 200
    var subject: Subject?
    Benchmark(name, configuration: configuration) { benchmark in
        guard let subject else { return }
        try unlock(subject)
        benchmark.startMeasurement()
        try lock(subject)
        benchmark.stopMeasurement()
    } setup: {
        subject = try prepare()
    } teardown: {
        subject = nil
    }
}
