import Glibc
import SystemPackage
import TokenVault

/// A program that observes a vault, or changes one for others to observe.
///
/// `VaultObserver observe VAULT STATE` stores `observer` in the service `ready`, to say that it is there. It
/// follows the service `watched` until `end` is stored. `VaultObserver write VAULT STATE NAME ROUNDS` stores,
/// deletes, renames and compacts.
///
/// At last, both print a line with what they know of each key: `KEY GENERATION`, or `KEY gone`.
@main
struct VaultObserver {
    static func main() async {
        let arguments = CommandLine.arguments
        do {
            switch (arguments.dropFirst().first, arguments.count) {
            case ("observe", 4):
                try await observe(try open(arguments[2], state: arguments[3]))
            case ("write", 6):
                guard let rounds = Int(arguments[5]) else { fail("no number") }
                try write(try open(arguments[2], state: arguments[3]), name: arguments[4], rounds: rounds)
            default: fail("usage: see the source")
            }
        } catch {
            fail("\(error)")
        }
    }

    static func fail(_ reason: String) -> Never {
        print("failed \(reason)")
        exit(1)
    }

    static func open(_ path: String, state: String) throws -> BlockingFileVault {
        let vault = try BlockingFileVault.open(
            at: FilePath(path),
            configuration: FileVaultConfiguration(
                stateDirectory: FilePath(state), lockTimeout: .seconds(3_600)))
        try vault.unlock(with: .keyFile(Secret(utf8: "not a real key: 0123456789abcdef0123456789abcdef")))
        return vault
    }

    static func show(_ known: [TokenKey: Generation?]) {
        for (key, generation) in known {
            print("\(key.name) \(generation.map { String($0.rawValue) } ?? "gone")")
        }
    }

    static func observe(_ vault: BlockingFileVault) async throws {
        let storage = FileTokenStorage(vault, service: "watched")
        let changes = storage.changes()
        try vault.storage(service: "ready").store(token: "yes", for: "observer")
        var seen: [TokenKey: UInt64] = [:]
        var known: [TokenKey: Generation?] = [:]
        for await event in changes {
            switch event {
            case .stored(let key, let generation), .deleted(let key, let generation):
                if let before = seen[key], generation.rawValue < before {
                    fail("\(key.name): \(generation.rawValue) after \(before)")
                }
                seen[key] = generation.rawValue
                if case .stored = event { known[key] = generation } else { known[key] = .some(nil) }
            case .overflowed:
                for key in known.keys { known[key] = .some(nil) }
                for item in try storage.blocking.list().items { known[item.key] = item.generation }
            }
            if known["end"] != nil { break }
        }
        show(known)
    }

    static func write(_ vault: BlockingFileVault, name: String, rounds: Int) throws {
        let storage = vault.storage(service: "watched")
        var known: [TokenKey: Generation?] = [:]
        var generator = SystemRandomNumberGenerator()
        for round in 0..<rounds {
            let key = TokenKey("\(name)-\(Int.random(in: 0..<5, using: &generator))")
            switch Int.random(in: 0..<12, using: &generator) {
            case 0..<8: known[key] = try storage.store(token: "fake \(round)", for: key)
            case 8, 9:
                if try storage.delete(for: key) { known[key] = .some(nil) }
            case 10:
                let target = TokenKey("\(name)-moved-\(round)")
                guard known[key] ?? nil != nil else { continue }
                known[target] = try storage.commit([.rename(key, to: target)]).generation
                known[key] = .some(nil)
            default: _ = try vault.compact()
            }
        }
        show(known)
    }
}
