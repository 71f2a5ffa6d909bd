import Synchronization
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// A vault on a simulated disk that has an index block and a few frames behind it.
struct IndexedVault {
    let disk: SimulatedDisk
    var facts: Facts
    let tailBound: Int

    /// Stores `count` items, one of them in several versions, and deletes one.
    init(items count: Int = 12, tailBound: Int = 8) throws {
        disk = SimulatedDisk(try SimulatedVault.fresh())
        self.tailBound = tailBound
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk), tailBound: tailBound)
        let storage = vault.storage(service: SimulatedVault.service)
        for index in 0..<count { try storage.store(token: "value \(index)", for: TokenKey("key \(index)")) }
        for version in 0..<3 { try storage.store(token: "version \(version)", for: "key 1") }
        facts = try SimulatedVault.facts(of: vault)
        vault.close()
    }

    /// Opens the vault as another process would.
    func open() throws -> BlockingFileVault {
        try SimulatedVault.open(at: SimulatedVault.location(on: disk), tailBound: tailBound)
    }

    var file: [UInt8] { disk.contents.directories[0][SimulatedVault.name] ?? [] }

    /// The frames of the file, by their prefixes.
    var frames: [Range<Int>] { TamperedVault(contents: disk.contents, facts: facts).frames }

    /// Where the pointer leads.
    var pointed: Int? {
        try? IndexPointer(decoding: file.bytes(in: 16_384..<16_896)).offset
    }

    /// Changes the file behind the vault's back.
    func tamper(_ change: (inout [UInt8]) -> Void) throws {
        var bytes = file
        change(&bytes)
        let open = try disk.directory(0).open(SimulatedVault.name, .readWrite)
        try open.write(bytes, at: 0)
        try open.synchronize()
    }
}

extension BlockingFileVault {
    /// What this process knows of the log.
    var logState: LogState { get throws { try session().log.state.withLock { $0 } } }
}
