import Benchmark
import TokenVault

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// What depends on how many items a vault file has, of 256 bytes each.
func registerVaultSizes() {
    for (count, name) in [
        (100, "1e2"), (1_000, "1e3"), (10_000, "1e4"), (100_000, "1e5"), (1_000_000, "1e6"),
    ] {
        let prepare = { try Place.vault("\(count)") { try fill($0, count) } }
        let secret = Secret.filler(256)
        register("file-open-\(name)-items", iterations: 100) {
            try prepare().close()
        } operation: { _, _ in
            try BlockingFileVault.open(at: Place.path("\(count)"), configuration: Place.configuration).close()
        }
        register("file-open-and-unlock-\(name)-items", iterations: 100) {
            try prepare().close()
        } operation: { _, _ in
            let vault = try BlockingFileVault.open(
                at: Place.path("\(count)"), configuration: Place.configuration)
            try vault.unlock(with: Place.key)
            vault.close()
        }
        register("file-retrieve-among-\(name)", scale: .kilo) {
            try prepare().storage(service: "benchmark")
        } operation: { storage, number in
            guard try storage.secret(for: TokenKey("item-\(number * 7_919 % count)"))?.count == 256 else {
                throw SomethingElse()
            }
        }
        register("file-replace-among-\(name)", iterations: 300) {
            try prepare().storage(service: "benchmark")
        } operation: { storage, number in
            _ = try storage.store(secret, for: TokenKey("item-\(number * 7_919 % count)"))
        }
        // The export leaves out an operation that takes more than two seconds; scale-benchmark measures it.
        guard count < 1_000_000 else { continue }
        register("file-verify-\(name)-items", iterations: 30, isLong: true, prepare: prepare) { vault, _ in
            guard try vault.verify().isClean else { throw SomethingElse() }
        }
        register("file-compact-\(name)-items", iterations: 10, isLong: true, prepare: prepare) { vault, _ in
            _ = try vault.compact()
        }
    }
}

/// Deleting from a vault of more than a mebibyte, where what was deleted is overwritten in its place.
func registerErasing() {
    let (count, deletions) = (10_000, 100)
    register("file-delete-among-1e4", iterations: deletions) {
        try Place.vault("erasing") { try fill($0, count) }.storage(service: "benchmark")
    } operation: { storage, number in
        guard try storage.delete(for: TokenKey("item-\(number)")) else { throw SomethingElse() }
    }
}

private func fill(_ vault: BlockingFileVault, _ count: Int) throws {
    let secret = Secret.filler(256)
    for start in stride(from: 0, to: count, by: 100_000) {
        _ = try vault.importItems(
            (start..<min(count, start + 100_000)).map { number in
                TokenItem(
                    metadata: TokenMetadata(
                        key: TokenKey("item-\(number)"), service: "benchmark", policy: .whenUnlocked,
                        created: Date(), modified: Date(), generation: Generation(rawValue: 0)),
                    secret: secret)
            })
    }
}
