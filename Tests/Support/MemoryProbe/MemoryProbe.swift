import Glibc
import SystemPackage
import TokenVault
import TokenVaultCrypto
import TokenVaultPlatform

/// Unlocks, reads and locks a vault and then looks for what must be gone, in all of its own memory:
/// `MemoryProbe VAULT STATE CYCLES [secret|agent]`. Prints what it looked for, or where it was left, and status 1.
/// With `secret`, keys lie in memory of `memfd_secret`; with `agent`, an agent in this process holds the vault, and this
/// is its client too.
@main
struct MemoryProbe {
    let search = MemorySearch()
    let vault: any ProbedVault
    var needles: [Needle] = []

    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count >= 4, let cycles = Int(arguments[3]) else {
            fail("usage: MemoryProbe VAULT STATE CYCLES [secret|agent]")
        }
        if arguments.last == "secret" { KeyMemory.preferSecretMemory() }
        do {
            var probe = try MemoryProbe(
                vault: FilePath(arguments[1]), state: FilePath(arguments[2]),
                throughAgent: arguments.last == "agent")
            try probe.run(cycles)
        } catch {
            fail("\(error)")
        }
    }

    static func fail(_ reason: String) -> Never {
        print("failed: \(reason)")
        exit(1)
    }

    // Unique bytes, from which each cycle makes the passphrase and the secrets again.
    private let passphrase = Masked(length: 48)
    private let keyFile = Masked(length: 64)
    private let values = (0..<3).map { _ in Masked(length: 200) }

    init(vault path: FilePath, state: FilePath, throughAgent: Bool) throws {
        let configuration = FileVaultConfiguration(stateDirectory: state, keyDerivationCost: .minimum)
        let file = try BlockingFileVault.create(
            at: path, unlockMethod: .passphrase(passphrase.secret), configuration: configuration)
        // Searches at once, before other allocations reuse the memory.
        var kept = try Self.secrets(in: state)
        Self.expectGone(kept, search, after: "the vault was made")
        // Another enrolment makes another key and another pepper.
        for device in try file.devices() { _ = try file.removeDevice(device.id) }
        Self.expectGone(kept, search, after: "the device was removed")
        _ = try file.enrolDevice()
        let fresh = try Self.secrets(in: state)
        guard zip(kept, fresh).allSatisfy({ !$0.isSame(as: $1) }) else { Self.fail("enrolment made no key") }
        kept = fresh
        Self.expectGone(kept, search, after: "it was enrolled")
        _ = try file.addSlot(.keyFile(keyFile.secret), scope: .all)
        if throughAgent {
            file.close()
            vault = try AgentVaultProbe(at: path, state: state)
            try vault.unlock(with: .passphrase(passphrase.secret))
        } else {
            vault = file
        }
        let storage = vault.probedStorage
        for (index, policy) in Self.policies.enumerated() {
            try storage.store(
                values[index].secret, for: TokenKey("key \(index)"), details: TokenDetails(policy: policy))
        }
        needles.append(passphrase.needle("the passphrase"))
        needles.append(keyFile.needle("the key file"))
        for value in values { needles.append(value.needle("a value")) }
        needles += kept
    }

    private static func expectGone(_ needles: [Needle], _ search: MemorySearch, after step: String) {
        for needle in needles {
            let places = search.places(of: needle)
            guard places.isEmpty else { fail("\(needle.name) is left in \(places) after \(step)") }
        }
    }

    /// The device's key, behind the magic and identifier of its file, and the passcode pepper.
    private static func secrets(in state: FilePath) throws -> [Needle] {
        [
            try needle("the device key", in: state, ".device", length: 72, from: 32),
            try needle("the pepper", in: state, ".pepper", length: 32, from: 16),
        ]
    }

    /// A part of a file of the state directory, read into memory that is wiped.
    private static func needle(
        _ what: String, in state: FilePath, _ suffix: String, length: Int, from offset: Int
    ) throws -> Needle {
        let name = try PosixDirectory(state).names().first { $0.hasSuffix(suffix) }
        let bytes = UnsafeMutableRawPointer.allocate(byteCount: length, alignment: 16)
        defer {
            explicit_bzero(bytes, length)
            bytes.deallocate()
        }
        let file = open(state.appending(name ?? "").string, O_RDONLY)
        guard file >= 0, read(file, bytes, length) == length else { fail("there is no \(suffix)") }
        close(file)
        return Needle(what, UnsafeRawBufferPointer(start: bytes, count: length), from: offset)
    }

    private static let policies: [AccessPolicy] = [
        .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly,
    ]

    mutating func run(_ cycles: Int) throws {
        let held = Self.keys()
        try vault.lockNow()
        let kept = Self.keys()
        let wiped = held.filter { key in !kept.contains { $0.isSame(as: key) } }
        // Each of the three policies has two keys.
        guard wiped.count >= 6 else { Self.fail("locking wiped \(wiped.count) keys") }
        needles += wiped
        expectGone(0)
        let storage = vault.probedStorage
        for cycle in 1...cycles {
            // A derivation from a passphrase costs more than the rest of the cycle.
            if cycle % 4 == 0 {
                try vault.unlock(with: .passphrase(passphrase.secret))
            } else {
                try vault.unlock(with: .keyFile(keyFile.secret))
            }
            for index in values.indices {
                // A key file does not open the item with the passcode policy.
                if index == 2, cycle % 4 != 0 { continue }
                let secret = try storage.secret(for: TokenKey("key \(index)"))
                guard secret?.count == values[index].length else { Self.fail("a value was not read") }
                if cycle == 4 { expectFound(needles[2 + index]) }
            }
            if cycle == 4 { for key in wiped { expectFound(key) } }
            try storage.store(values[0].secret, for: "key 0", details: TokenDetails(policy: .whenUnlocked))
            try vault.lockNow()
            expectGone(cycle)
        }
        let planted = UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 16)
        for needle in needles {
            for form in Form.allCases {
                let places = search.places(of: needle, as: form)
                guard places.isEmpty else { Self.fail("\(needle.name) is left as \(form) in \(places)") }
                needle.write(as: form, to: planted + 24)
                expectFound(needle, as: form)
                explicit_bzero(planted, 64)
            }
        }
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

    private func expectFound(_ needle: Needle, as form: Form = .raw) {
        guard !search.places(of: needle, as: form).isEmpty else {
            Self.fail("\(needle.name) is not found where it is")
        }
    }

    private static func keys() -> [Needle] {
        KeyArena.shared.contents.map { key in
            key.withUnsafeBytes { Needle("a key", $0, from: 16) }
        }
    }
}
