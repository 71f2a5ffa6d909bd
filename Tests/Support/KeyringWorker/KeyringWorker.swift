import Glibc
import TokenVault

/// A program that uses a keyring hard, for tests that run many of it at once:
/// `KeyringWorker ADDRESS NAME ROUNDS`. It stores a key of its own in each round, reads it back, and counts
/// by compare-and-store in every tenth. What was acknowledged is printed at the end, a line each:
/// `counted N`, then `holds KEY VALUE`.
@main
struct KeyringWorker {
    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, let rounds = Int(arguments[3]) else {
            fail("usage: KeyringWorker ADDRESS NAME ROUNDS")
        }
        do {
            try work(address: arguments[1], name: arguments[2], rounds: rounds)
        } catch {
            fail("\(error)")
        }
    }

    static func fail(_ reason: String) -> Never {
        print("failed \(reason)")
        exit(1)
    }

    static func work(address: String, name: String, rounds: Int) throws {
        let configuration = SecretServiceConfiguration(
            bus: .address(address), prompting: .never, timeout: .seconds(3_600))
        let storage = SecretService(configuration: configuration).storage(service: "workers").blocking
        var held: [String: String] = [:]
        var counted = 0
        for round in 0..<rounds {
            let key = "\(name)-\(round % 5)"
            let value = "fake token \(round) of \(name)"
            let generation = try storage.store(token: value, for: TokenKey(key))
            held[key] = value
            // No other worker writes this key.
            guard try storage.metadata(for: TokenKey(key))?.generation == generation else {
                fail("round \(round): another generation than the one acknowledged")
            }
            guard try storage.retrieve(for: TokenKey(key)) == value else {
                fail("round \(round): \(key) is not what was acknowledged")
            }
            if round % 10 == 9 {
                try count(in: storage)
                counted += 1
            }
        }
        print("counted \(counted)")
        for (key, value) in held { print("holds \(key) \(value)") }
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
