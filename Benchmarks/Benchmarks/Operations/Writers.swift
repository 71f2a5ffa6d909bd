import Benchmark
import TokenVault

/// As many stores by one task, by 4 and by 16 at once.
func registerWriters(_ backend: Backend) {
    let stores = backend == .secretService ? 16 : 64
    let secret = Secret.filler(1_024)
    for writers in [1, 4, 16] {
        var configuration = Benchmark.defaultConfiguration
        configuration.maxIterations = 50
        var storage: (any TokenStorage)?
        Benchmark(
            "\(backend.rawValue)-\(stores)-stores-by-\(writers)", configuration: configuration
        ) { _ in
            guard let storage else { return }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in 0..<writers {
                    group.addTask {
                        for _ in 0..<stores / writers {
                            try await storage.store(secret, for: TokenKey("writer-\(writer)"))
                        }
                    }
                }
                try await group.waitForAll()
            }
        } setup: {
            storage = try backend.sharedStorage()
        } teardown: {
            storage = nil
        }
    }
}
