import Benchmark
import TokenVault
import VaultAgent

/// Opening; unlocking with a passphrase at the smallest cost that is allowed, and with a key file; and locking. A keyring is unlocked
/// and locked by the desktop, with somebody there; memory has nothing to open.
func registerUnlocking() {
    for (name, method) in [("passphrase", Place.passphrase), ("key-file", Place.key)] {
        registerPart("file-unlock-\(name)") {
            try Place.vault(name, method: method)
        } before: { vault in
            vault.lock()
        } operation: { vault in
            try vault.unlock(with: method)
        }
        registerPart("agent-unlock-\(name)") {
            try Place.agentVault("agent-\(name)", method: method)
        } before: { vault in
            guard try vault.lock() else { throw SomethingElse() }
        } operation: { vault in
            try vault.unlock(with: method, stateDirectory: Place.stateDirectory)
        }
    }
    registerPart("file-lock") {
        try Place.vault("key-file")
    } before: { vault in
        try vault.unlock(with: Place.key)
    } operation: { vault in
        vault.lock()
    }
    registerPart("agent-lock") {
        try Place.agentVault()
    } before: { vault in
        try vault.unlock(with: Place.key, stateDirectory: Place.stateDirectory)
    } operation: { vault in
        guard try vault.lock() else { throw SomethingElse() }
    }
    // The agent already has the vault unlocked, so only the connection is opened.
    registerPart("agent-open") {
        try Place.agentVault()
    } before: { _ in
    } operation: { vault in
        let another = BlockingAgentVault(at: Place.path("agent"), agent: Place.agent)
        guard try another.storage(service: "benchmark").lockState() == .unlocked else {
            throw SomethingElse()
        }
    }
    // Opens a connection to the bus and an encrypted session, and locates the keyring.
    registerPart("secret-service-open") {
    } before: { _ in
    } operation: { _ in
        guard try Place.secretService().storage(service: "benchmark").blocking.lockState() == .unlocked else {
            throw SomethingElse()
        }
    }
}

/// Only `operation` is timed, on what `prepare` makes and `before` puts into the state for it.
private func registerPart<Subject>(
    _ name: String, prepare: @escaping () throws -> Subject, before: @escaping (Subject) throws -> Void,
    operation: @escaping (Subject) throws -> Void
) {
    var configuration = Benchmark.defaultConfiguration
    configuration.maxIterations = 200
    var subject: Subject?
    Benchmark(name, configuration: configuration) { benchmark in
        guard let subject else { return }
        try before(subject)
        benchmark.startMeasurement()
        try operation(subject)
        benchmark.stopMeasurement()
    } setup: {
        subject = try prepare()
    } teardown: {
        subject = nil
    }
}
