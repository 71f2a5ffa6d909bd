import TokenVault
import TokenVaultTesting

/// A backend that is held against the contract: its name, and how a fresh store is made.
struct Backend: Sendable, CustomStringConvertible {
    let description: String
    let make: @Sendable () async throws -> any ConformanceSubject
}

/// Every backend of the package. A new one is a line here.
let backends = [
    Backend(description: "memory") { MemorySubject() },
    Backend(description: "memory, blocking view") { ThroughBlockingView(MemorySubject()) },
]
