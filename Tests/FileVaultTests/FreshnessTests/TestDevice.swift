import SystemPackage
import TokenVaultPlatform

@testable import TokenVault

/// A device with a disk of its own: the vault's file in one directory, what the device remembers in another.
struct TestDevice {
    let disk = SimulatedDisk()

    static let key = SimulatedVault.key("first")

    /// Creates the vault here.
    func create() throws {
        try BlockingFileVault.create(
            at: SimulatedVault.location(on: disk), unlockMethod: Self.key, configuration: configuration
        ).close()
    }

    private var configuration: FileVaultConfiguration { SimulatedVault.configuration(tailBound: 6) }

    /// Runs `body` with the vault open, as a program of its own does.
    @discardableResult
    func use<Value>(_ body: (BlockingFileVault) throws -> Value) throws -> Value {
        let vault = try opened()
        defer { vault.close() }
        return try body(vault)
    }

    func opened() throws -> BlockingFileVault {
        let vault = try BlockingFileVault.open(
            at: SimulatedVault.location(on: disk), configuration: configuration)
        do {
            try vault.unlock(with: Self.key)
        } catch {
            vault.close()
            throw error
        }
        return vault
    }

    func copy() throws -> VaultCopy {
        let copy = try VaultCopy.open(at: SimulatedVault.location(on: disk), configuration: configuration)
        try copy.unlock(with: Self.key)
        return copy
    }

    /// Makes the file at the vault's path the vault, on purpose.
    func adopt() throws {
        let copy = try copy()
        defer { copy.close() }
        _ = try copy.adopt()
    }

    /// Merges the file with these bytes into the one at the vault's path.
    @discardableResult
    func merge(_ bytes: [UInt8], isRehearsal: Bool = false) throws -> MergeReport {
        let directory = disk.directory(0)
        try? directory.remove("copy")
        try directory.open("copy", .create).write(bytes, at: 0)
        defer { try? directory.remove("copy") }
        let other = try VaultCopy.open(
            at: VaultLocation(
                directory: directory, name: "copy", state: disk.directory(1), path: "/simulated/copy"),
            configuration: configuration)
        try other.unlock(with: Self.key)
        let ours = try copy()
        defer {
            ours.close()
            other.close()
        }
        return try ours.merge(other, isRehearsal: isRehearsal)
    }

    /// Loses what the device remembers of how far the vault had come.
    func forgetAnchor() {
        let state = disk.directory(1)
        for name in (try? state.names()) ?? [] where name.hasSuffix(".anchor") { try? state.remove(name) }
    }

    /// The bytes of the vault's file.
    var file: [UInt8] { disk.contents.directories[0][SimulatedVault.name] ?? [] }

    /// Puts another file at the vault's path, as programs do that synchronise folders.
    func receive(_ bytes: [UInt8]) throws {
        let directory = disk.directory(0)
        try? directory.remove(".received")
        let file = try directory.open(".received", .create)
        try file.write(bytes, at: 0)
        try file.synchronize()
        try directory.rename(".received", to: SimulatedVault.name, replacing: true)
    }
}

extension BlockingFileVault {
    func store(_ value: String, for key: String) throws {
        _ = try storage(service: SimulatedVault.service).commit([
            .store(
                Secret(utf8: value), for: TokenKey(key), details: TokenDetails(policy: .whenUnlocked))
        ])
    }

    @discardableResult
    func delete(_ key: String) throws -> Bool {
        try storage(service: SimulatedVault.service).delete(for: TokenKey(key))
    }

    func metadata(of key: String) throws -> TokenMetadata? {
        try storage(service: SimulatedVault.service).metadata(for: TokenKey(key))
    }

    func value(of key: String) throws -> String? {
        try storage(service: SimulatedVault.service).retrieve(for: TokenKey(key))
    }

    /// What is in the vault, read item by item.
    func values() throws -> [String: String] {
        try SimulatedVault.facts(of: self).mapValues(\.value)
    }
}
