import Benchmark
import TokenVault

/// What is done with single items, and with many at once.
func registerItems(_ backend: Backend) {
    let scale = backend.scale
    for (size, name) in sizes {
        let prepare = { try backend.storage(size: size) }
        let secret = Secret.filler(size)
        register("\(backend.rawValue)-store-\(name)", iterations: 300, prepare: prepare) { storage, number in
            _ = try storage.store(secret, for: TokenKey("new-\(number)"))
        }
        register("\(backend.rawValue)-replace-\(name)", prepare: prepare) { storage, number in
            _ = try storage.store(secret, for: TokenKey("item-\(number % Backend.items)"))
        }
        register("\(backend.rawValue)-retrieve-\(name)", scale: scale, prepare: prepare) { storage, number in
            guard try storage.secret(for: TokenKey("item-\(number % Backend.items)"))?.count == size else {
                throw SomethingElse()
            }
        }
        let batch = backend.batch
        register("\(backend.rawValue)-batch-of-\(batch)-\(name)", iterations: 100, prepare: prepare) {
            storage, _ in
            _ = try storage.commit((0..<batch).map { .store(secret, for: TokenKey("item-\($0)")) })
        }
        register(
            "\(backend.rawValue)-compare-and-store-\(name)",
            prepare: { try Compared(storage: try prepare(), secret: secret) }
        ) { compared, _ in try compared.store() }
    }
    let prepare = { try backend.storage(size: 1_024) }
    register("\(backend.rawValue)-retrieve-missing", scale: scale, prepare: prepare) { storage, number in
        guard try storage.secret(for: TokenKey("missing-\(number)")) == nil else { throw SomethingElse() }
    }
    register("\(backend.rawValue)-list-100", prepare: prepare) { storage, _ in
        guard try storage.list(.all).items.count == Backend.items else { throw SomethingElse() }
    }
    let deletions = 100
    register(
        "\(backend.rawValue)-delete", iterations: deletions,
        prepare: { try backend.storage(items: Backend.items + deletions + 2, size: 1_024) }
    ) { storage, number in
        guard try storage.delete(for: TokenKey("item-\(number)")) else { throw SomethingElse() }
    }
}

extension Backend {
    /// How many retrievals are timed together.
    fileprivate var scale: BenchmarkScalingFactor {
        switch self {
        case .memory, .file: .kilo
        case .agent, .secretService: .one
        }
    }

    /// How many items a batch has. A keyring writes each of them anew.
    fileprivate var batch: Int { self == .secretService ? 10 : 100 }
}

/// An item and the generation that it has.
private final class Compared {
    private let storage: any BlockingTokenStorage
    private let secret: Secret
    private var generation: Generation

    init(storage: any BlockingTokenStorage, secret: Secret) throws {
        (self.storage, self.secret) = (storage, secret)
        generation = try storage.store(secret, for: TokenKey("compared"))
    }

    func store() throws {
        generation = try storage.compareAndStore(secret, for: TokenKey("compared"), expected: generation)
    }
}

/// What is timed did not do what it is to do.
struct SomethingElse: Error {}
