import SystemPackage
import TokenVault
import TokenVaultPlatform

/// A vault on a simulated disk: where it is, what opens it, and what is in it.
enum SimulatedVault {
    static let name = "test.vault"
    static let service = "com.example.crash"

    /// What opens the vaults of these tests: obviously no secret.
    static let keys: [String: UnlockMethod] = [
        "first": .keyFile(Secret([UInt8](repeating: 0x11, count: 32))),
        "second": .keyFile(Secret([UInt8](repeating: 0x22, count: 32))),
        "third": .keyFile(Secret([UInt8](repeating: 0x33, count: 32))),
        "old words": .passphrase(Secret(utf8: "old words")),
        "new words": .passphrase(Secret(utf8: "new words")),
    ]

    /// The method called `name`. An unknown name gives one that opens nothing.
    static func key(_ name: String) -> UnlockMethod { keys[name] ?? .keyFile(Secret([])) }

    static func configuration(lockTimeout: Duration = .seconds(2)) -> FileVaultConfiguration {
        FileVaultConfiguration(
            stateDirectory: "/simulated/state", lockTimeout: lockTimeout, keyDerivationCost: .minimum,
            clock: { SimulatedVault.date })
    }

    static func location(_ directory: any DiskDirectory, _ state: (any DiskDirectory)?) -> VaultLocation {
        VaultLocation(directory: directory, name: name, state: state, path: "/simulated/vault/test.vault")
    }

    static func location(on disk: SimulatedDisk) -> VaultLocation {
        location(disk.directory(0), disk.directory(1))
    }

    /// What a disk holds after a vault was made on it, all of it durable.
    static func fresh(key: String = "first") throws -> DiskContents {
        let disk = SimulatedDisk()
        let vault = try BlockingFileVault.create(
            at: location(on: disk), unlockMethod: Self.key(key), configuration: configuration())
        vault.close()
        return disk.contents
    }

    /// Opens and unlocks the vault at `location`.
    static func open(
        at location: VaultLocation, key: String = "first", lockTimeout: Duration = .seconds(2)
    ) throws -> BlockingFileVault {
        let vault = try BlockingFileVault.open(
            at: location, configuration: configuration(lockTimeout: lockTimeout))
        try vault.unlock(with: Self.key(key))
        return vault
    }

    /// Everything in the vault: each item's value and generation.
    static func facts(of vault: BlockingFileVault) throws -> Facts {
        let storage = vault.storage(service: service)
        let listing = try storage.list(.all)
        var facts: Facts = [:]
        for item in listing.items {
            guard let found = try storage.item(for: item.key) else {
                throw Complaint("\(item.key) is listed and not there")
            }
            guard found.metadata == item else { throw Complaint("\(item.key) is listed with other metadata") }
            guard let text = found.secret.unprotectedText() else {
                throw Complaint("\(item.key) is not the text it was")
            }
            facts[item.key.name] = Fact(value: text, generation: found.metadata.generation.rawValue)
        }
        if listing.hidden > 0 { throw Complaint("\(listing.hidden) items are hidden") }
        return facts
    }

    struct Complaint: Error, CustomStringConvertible {
        var description: String
        init(_ description: String) { self.description = description }
    }
}

/// What must be true of a vault after a crash: it opens, it holds what was acknowledged and nothing else,
/// it verifies, and it can be written to.
struct VaultSubject: CrashSubject {
    /// The methods to try, by name: those that open are found as facts `slot NAME`.
    var methods: [String] = []
    /// The method that opens the vault in every state; `nil` when none of them need.
    var key: String? = "first"

    func inspect(_ disk: SimulatedDisk, expecting expectations: [Expectation]) -> [String] {
        do {
            return try look(at: disk, expecting: expectations)
        } catch {
            return ["\(error)"]
        }
    }

    private func look(at disk: SimulatedDisk, expecting expectations: [Expectation]) throws -> [String] {
        let location = SimulatedVault.location(on: disk)
        guard try disk.directory(0).attributes(of: SimulatedVault.name) != nil else {
            return expectations.compactMap { $0.complaint(about: [:]) }.map { "no vault file: \($0)" }
        }
        var slots: Facts = [:]
        var opener = key
        for method in methods {
            do {
                try SimulatedVault.open(at: location, key: method).close()
                slots["slot \(method)"] = Fact(value: "opens", generation: 0)
                opener = opener ?? method
            } catch let error as TokenStorageError where error.code == .wrongPassphrase {}
        }
        guard let opener else { return ["no method opens the vault"] }

        let vault = try SimulatedVault.open(at: location, key: opener)
        let found = try SimulatedVault.facts(of: vault)
        let all = found.merging(slots) { $1 }
        var complaints = expectations.compactMap { $0.complaint(about: all) }
        let report = try vault.verify()
        if !report.isClean { complaints.append("verify: \(report.problems)") }
        let generation = try vault.storage(service: SimulatedVault.service)
            .store(token: "written after the crash", for: "after").rawValue
        let highest = expectations.map(\.highest).max() ?? 0
        if generation <= highest {
            complaints.append("generation \(generation) after \(highest) was acknowledged")
        }
        vault.close()

        let again = try SimulatedVault.open(at: location, key: opener)
        var expected = found
        expected["after"] = Fact(value: "written after the crash", generation: generation)
        if try SimulatedVault.facts(of: again) != expected {
            complaints.append("a store after the crash does not survive opening the vault anew")
        }
        if try !again.verify().isClean { complaints.append("verify after a store: not clean") }
        again.close()
        return complaints
    }
}
