import FoundationEssentials
import Synchronization
import SystemPackage
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// A device with a disk of its own: the vault's file in one directory, what the device remembers in another.
struct TestDevice {
    let disk = SimulatedDisk()
    /// The seconds by which its clock is ahead of the simulated date.
    var secondsAhead = 0.0

    static let key = SimulatedVault.key("first")

    /// Creates the vault here.
    func create() throws {
        try BlockingFileVault.create(
            at: SimulatedVault.location(on: disk), unlockMethod: Self.key, configuration: configuration
        ).close()
    }

    private var configuration: FileVaultConfiguration {
        var configuration = SimulatedVault.configuration(tailBound: 6)
        let date = SimulatedVault.date.addingTimeInterval(secondsAhead)
        configuration.clock = { date }
        return configuration
    }

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
    func merge(
        _ bytes: [UInt8], isRehearsal: Bool = false, progress: ((Int, Int) -> Void)? = nil
    ) throws -> MergeReport {
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
        return try ours.merge(other, isRehearsal: isRehearsal, progress: progress)
    }

    /// Receives the vault of `owner`, and enrols.
    func enrol(in owner: TestDevice, with method: UnlockMethod = Self.key) throws {
        try receive(owner.file)
        try use { vault in
            try vault.unlock(with: method)
            _ = try vault.enrolDevice()
        }
    }

    /// Loses what the device remembers of how far the vault had come.
    func forgetAnchor() {
        let state = disk.directory(1)
        for name in (try? state.names()) ?? [] where name.hasSuffix(".anchor") { try? state.remove(name) }
    }

    /// The place `name` beside the vault.
    func place(_ name: String) -> VaultLocation {
        VaultLocation(
            directory: disk.directory(0), name: name, state: disk.directory(1),
            path: FilePath("/simulated/\(name)"))
    }

    /// The bytes of the file `name` beside the vault.
    func bytes(of name: String) throws -> [UInt8] {
        let file = try disk.directory(0).open(name, .read)
        return try file.read(try file.attributes().size, at: 0)
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

/// Returns the places of the frames in the bytes of a vault's file.
func frames(of bytes: [UInt8]) -> [Range<Int>] {
    var frames: [Range<Int>] = []
    var offset = VaultFormat.logStart
    while let length = Frame.length(ofPrefix: bytes, at: offset) {
        frames.append(offset..<offset + length)
        offset += length
    }
    return frames
}

extension BlockingFileVault {
    func store(_ value: String, for key: String) throws {
        _ = try storage(service: SimulatedVault.service).commit([
            .store(
                Secret(utf8: value), for: TokenKey(key), details: TokenDetails(policy: .whenUnlocked))
        ])
    }

    /// Stores an item that only this device can read.
    func storeOwn(_ value: String, for key: TokenKey) throws(TokenStorageError) {
        try storage(service: SimulatedVault.service).store(
            token: value, for: key, policy: .whenUnlockedThisDeviceOnly)
    }

    /// Stores an item of each of these policies.
    func storeEach(_ policies: [AccessPolicy], _ round: Int) throws {
        for policy in policies {
            try storage(service: SimulatedVault.service).store(
                token: "fake \(round)", for: TokenKey("\(round) \(policy)"), policy: policy)
        }
    }

    /// Whether every device has renewed its keys since the last key rotation.
    var hasRenewedKeys: Bool { state.withLock { $0.keybag.sets.allSatisfy { $0.olderRoots == nil } } }

    /// The keys of the items that this device can read.
    func listedKeys() throws -> Set<String> {
        Set(try storage(service: SimulatedVault.service).list(.all).items.map(\.key.name))
    }

    /// Enrols this device if there is room, and stores an item that only this device can read. Returns false
    /// where there is no room, or where the item is another device's.
    func storeOwnIfPossible(_ value: String, for key: TokenKey) throws -> Bool {
        let devices = try devices()
        if !devices.contains(where: \.isThisDevice) {
            guard devices.count < 4 else { return false }
            _ = try enrolDevice()
        }
        do throws(TokenStorageError) {
            try storeOwn(value, for: key)
            return true
        } catch {
            guard error.code == .wrongDevice else { throw error }
            return false
        }
    }

    /// The items with values that only this device can read, of those that are named "own" and a number.
    func ownItems() throws -> [String: String] {
        var items: [String: String] = [:]
        for key in try listedKeys() where key.wholeMatch(of: #/own [0-9]+/#) != nil {
            items[key] = try value(of: key)
        }
        return items
    }

    /// The values of the items that this device can read whose key begins with `prefix`.
    func listedValues(_ prefix: String) throws -> [String] {
        try listedKeys().filter { $0.hasPrefix(prefix) }.compactMap { try value(of: $0) }
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
