import Glibc
import SystemPackage
import TokenVault

/// A program that uses a vault hard, for tests that run many of it at once:
/// `VaultWorker VAULT STATE NAME ROUNDS`. It stores, replaces, deletes and counts by compare-and-store,
/// compacts now and then, and reads what the others write. What was acknowledged is printed at the end,
/// a line each: `counted N`, then `holds KEY VALUE` for every key of its own.
@main
struct VaultWorker {
    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count == 5, let rounds = Int(arguments[4]) else {
            fail("usage: VaultWorker VAULT STATE NAME ROUNDS")
        }
        do {
            try work(vault: arguments[1], state: arguments[2], name: arguments[3], rounds: rounds)
        } catch {
            fail("\(error)")
        }
    }

    static func fail(_ reason: String) -> Never {
        print("failed \(reason)")
        exit(1)
    }

    static func work(vault path: String, state: String, name: String, rounds: Int) throws {
        let vault = try BlockingFileVault.open(
            at: FilePath(path),
            configuration: FileVaultConfiguration(
                stateDirectory: FilePath(state), lockTimeout: .seconds(3_600)))
        try vault.unlock(
            with: .keyFile(Secret(utf8: "not a real key: 0123456789abcdef0123456789abcdef")))
        let storage = vault.storage(service: "workers")
        var own: [String: String] = [:]
        var counted = 0
        var generator = Sequence32(seed: name)
        for round in 0..<rounds {
            let key = "\(name)-\(generator.next() % 5)"
            switch generator.next() % 10 {
            case 0..<5:
                let value = "\(name) \(round) " + String(repeating: "x", count: Int(generator.next() % 3_000))
                let generation = try storage.store(token: value, for: TokenKey(key))
                own[key] = value
                // Another process may have compacted meanwhile, but no other process writes this key.
                guard try storage.metadata(for: TokenKey(key))?.generation == generation else {
                    fail("round \(round): another generation than the one acknowledged")
                }
            case 5:
                let existed = try storage.delete(for: TokenKey(key))
                guard existed == (own[key] != nil) else { fail("round \(round): delete told \(existed)") }
                own[key] = nil
            case 6, 7:
                try count(in: storage)
                counted += 1
            case 8:
                // The value repeats one letter, so a reader that sees two letters has seen a mixture.
                let letter = String(UnicodeScalar(UInt8(97 + generator.next() % 26)))
                try storage.store(
                    token: String(repeating: letter, count: 100 + Int(generator.next() % 5_000)),
                    for: "shared")
            default:
                if generator.next() % 8 == 0 { _ = try vault.compact() }
            }
            guard try storage.retrieve(for: TokenKey(key)) == own[key] else {
                fail("round \(round): \(key) is not what was acknowledged")
            }
            if let shared = try storage.retrieve(for: "shared"), Set(shared.utf8).count != 1 {
                fail("round \(round): a half")
            }
        }
        print("counted \(counted)")
        for (key, value) in own { print("holds \(key) \(value)") }
    }

    /// Adds one to the shared counter, trying again whenever another process was faster.
    static func count(in storage: some BlockingTokenStorage) throws {
        while true {
            let item = try storage.item(for: "counter")
            let value = item.flatMap { $0.secret.unprotectedText() }.flatMap { Int($0) } ?? 0
            do {
                try storage.compareAndStore(
                    Secret(utf8: String(value + 1)), for: "counter", expected: item?.metadata.generation)
                return
            } catch {
                if error.code != .conflict { throw error }
            }
        }
    }
}

/// Pseudo-random numbers that are the same for the same seed (xorshift32).
struct Sequence32 {
    private var state: UInt32

    init(seed: String) {
        state = seed.utf8.reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 } | 1
    }

    mutating func next() -> UInt32 {
        state ^= state << 13
        state ^= state >> 17
        state ^= state << 5
        return state
    }
}
