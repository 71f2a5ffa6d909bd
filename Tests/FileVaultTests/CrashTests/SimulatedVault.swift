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
        "fourth": .keyFile(Secret([UInt8](repeating: 0x44, count: 32))),
        "old words": .passphrase(Secret(utf8: "old words")),
        "new words": .passphrase(Secret(utf8: "new words")),
    ]

    /// The method called `name`. An unknown name gives one that opens nothing.
    static func key(_ name: String) -> UnlockMethod { keys[name] ?? .keyFile(Secret([])) }

    /// With a small `tailBound`, few commits are enough for an index block.
    static func configuration(
        lockTimeout: Duration = .seconds(60), tailBound: Int? = nil
    ) -> FileVaultConfiguration {
        var configuration = FileVaultConfiguration(
            stateDirectory: "/simulated/state", lockTimeout: lockTimeout, keyDerivationCost: .minimum,
            clock: { SimulatedVault.date })
        if let tailBound { configuration.tailBound = tailBound }
        configuration.passwordHash = RememberedHashes.derive
        return configuration
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
        at location: VaultLocation, key: String = "first", lockTimeout: Duration = .seconds(60),
        tailBound: Int? = nil
    ) throws -> BlockingFileVault {
        let vault = try BlockingFileVault.open(
            at: location, configuration: configuration(lockTimeout: lockTimeout, tailBound: tailBound))
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
