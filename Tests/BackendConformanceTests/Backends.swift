import TokenVault
import TokenVaultTesting

/// A backend that is held against the contract: its name, how a fresh store is made, and by which checks.
struct Backend: Sendable, CustomStringConvertible {
    let description: String
    let isHeldAgainst: @Sendable (ConformanceCheck) -> Bool
    let make: @Sendable () async throws -> any ConformanceSubject

    init(
        _ description: String, isHeldAgainst: @escaping @Sendable (ConformanceCheck) -> Bool = { _ in true },
        make: @escaping @Sendable () async throws -> any ConformanceSubject
    ) {
        self.description = description
        self.isHeldAgainst = isHeldAgainst
        self.make = make
    }
}

/// Every backend of the package. A new one is a line here.
let backends = [
    Backend("memory") { MemorySubject() },
    Backend("memory, blocking view") { ThroughBlockingView(MemorySubject()) },
    Backend("bridged to a queue") { BridgedSubject() },
    Backend("file, key file") { try FileSubject(passphrase: false) },
    Backend("file, key file, blocking view") {
        ThroughBlockingView(try FileSubject(passphrase: false))
    },
    // Runs the checks that depend on the unlock method, or on the policy that only a passphrase gives.
    Backend("file, passphrase", isHeldAgainst: { !$0.requirements.isEmpty || $0.name.contains("polic") }) {
        try FileSubject(passphrase: true)
    },
]
