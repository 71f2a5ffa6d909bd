import Glibc
import SystemPackage
import TokenVault
import TokenVaultCrypto

/// Unlocks, reads and locks a vault and then looks for what must be gone, in all of its own memory:
/// `MemoryProbe VAULT STATE CYCLES [secret]`. Prints what it looked for, or where it was left, and status 1.
/// With `secret`, keys lie in memory of `memfd_secret`.
@main
struct MemoryProbe {
    let search = MemorySearch()
    let vault: BlockingFileVault
    var needles: [Needle] = []

    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count >= 4, let cycles = Int(arguments[3]) else {
            fail("usage: MemoryProbe VAULT STATE CYCLES [secret]")
        }
        if arguments.last == "secret" { KeyMemory.preferSecretMemory() }
        do {
            var probe = try MemoryProbe(vault: arguments[1], state: arguments[2])
            try probe.run(cycles)
        } catch {
            fail("\(error)")
        }
    }

    static func fail(_ reason: String) -> Never {
        print("failed: \(reason)")
        exit(1)
    }

    // Bytes that nothing else has, from which passphrase and secrets are made again for each cycle.
    private let passphrase = Masked(length: 48)
    private let keyFile = Masked(length: 64)
    private let values = (0..<3).map { _ in Masked(length: 200) }

    init(vault path: String, state: String) throws {
        let configuration = FileVaultConfiguration(
            stateDirectory: FilePath(state), keyDerivationCost: .minimum)
        vault = try BlockingFileVault.create(
            at: FilePath(path), unlockMethod: .passphrase(passphrase.secret), configuration: configuration)
        _ = try vault.addSlot(.keyFile(keyFile.secret), scope: .all)
        let storage = vault.storage(service: "probe")
        for (index, policy) in Self.policies.enumerated() {
            try storage.store(
                values[index].secret, for: TokenKey("key \(index)"), details: TokenDetails(policy: policy))
        }
        needles.append(passphrase.needle("the passphrase"))
        needles.append(keyFile.needle("the key file"))
        for value in values { needles.append(value.needle("a value")) }
    }

    private static let policies: [AccessPolicy] = [
        .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly,
    ]

    mutating func run(_ cycles: Int) throws {
        let held = Self.keys()
        vault.lock()
        let kept = Self.keys()
        let wiped = held.filter { key in !kept.contains { $0.isSame(as: key) } }
        // Two keys for each of the three policies.
        guard wiped.count >= 6 else { Self.fail("locking wiped \(wiped.count) keys") }
        needles += wiped
        expectGone(0)
        let storage = vault.storage(service: "probe")
        for cycle in 1...cycles {
            // A derivation from a passphrase costs more than all of the rest.
            if cycle % 4 == 0 {
                try vault.unlock(with: .passphrase(passphrase.secret))
            } else {
                try vault.unlock(with: .keyFile(keyFile.secret))
            }
            for index in values.indices {
                // The one that needs the passcode is not for a key file.
                if index == 2, cycle % 4 != 0 { continue }
                let secret = try storage.secret(for: TokenKey("key \(index)"))
                guard secret?.count == values[index].length else { Self.fail("a value was not read") }
                if cycle == 4 { expectFound(needles[2 + index]) }
            }
            if cycle == 4 { for key in wiped { expectFound(key) } }
            vault.lock()
            expectGone(cycle)
        }
        let planted = UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 16)
        for needle in needles {
            needle.write(to: planted + 24)
            expectFound(needle)
        }
        explicit_bzero(planted, 64)
        planted.deallocate()
        let protection = KeyMemory.protection?.rawValue ?? "none"
        print(
            "done: \(cycles) cycles, \(wiped.count) keys, \(needles.count - wiped.count) others, \(protection)"
        )
    }

    private func expectGone(_ cycle: Int) {
        for needle in needles {
            let places = search.places(of: needle)
            guard places.isEmpty else { Self.fail("\(needle.name) is left in \(places), cycle \(cycle)") }
        }
    }

    private func expectFound(_ needle: Needle) {
        guard !search.places(of: needle).isEmpty else { Self.fail("\(needle.name) is not found where it is") }
    }

    private static func keys() -> [Needle] {
        KeyArena.shared.contents.map { key in
            key.withUnsafeBytes { Needle("a key", $0, from: 16) }
        }
    }
}

/// Random letters under a mask.
struct Masked {
    let length: Int
    private let mask: [UInt8]
    private let masked: [UInt8]

    init(length: Int) {
        self.length = length
        let mask = (0..<length).map { _ in UInt8.random(in: .min ... .max) }
        masked = mask.map { $0 ^ UInt8.random(in: 0x61...0x7a) }
        self.mask = mask
    }

    /// The letters, in memory that is wiped.
    var secret: Secret {
        Secret(bytes)
    }

    private var bytes: SecretBytes {
        SecretBytes(capacity: length) { target in
            for index in 0..<length { target[index] = masked[index] ^ mask[index] }
            return length
        }
    }

    func needle(_ name: String) -> Needle { bytes.withUnsafeBytes { Needle(name, $0, from: 24) } }
}
