import Glibc
import HookedStorage
import Synchronization
import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Thousands of items in one commit.
@Suite struct BatchTests {
    private static let service = "service"

    private static func item(_ number: Int) -> TokenItem {
        let date = Date(timeIntervalSince1970: 1_800_000_000)
        return TokenItem(
            metadata: TokenMetadata(
                key: TokenKey("key \(number)"), service: service, policy: .whenUnlocked, created: date,
                modified: date, generation: Generation(rawValue: 0)),
            secret: Secret(utf8: "fake \(number)"))
    }

    private static func items(_ count: Int) -> [TokenItem] { (0..<count).map(item) }

    private func vault(
        _ sandbox: Sandbox, _ written: Written? = nil, isRemote: Bool = false
    ) throws -> BlockingFileVault {
        try sandbox.made().close()
        let base = try PosixDirectory(sandbox.vault.removingLastComponent())
        let directory: any DiskDirectory =
            written.map {
                WatchedDirectory(base, $0, isRemote: isRemote)
            } ?? base
        let configuration = sandbox.configuration
        let vault = try BlockingFileVault.open(
            at: VaultLocation(
                directory: directory, name: "test.vault",
                state: try PosixDirectory(try #require(configuration.stateDirectory)), path: sandbox.vault),
            configuration: configuration)
        try vault.unlock(with: keyFile)
        return vault
    }

    /// The room for a batch is taken without filling it, and nothing of it is written twice.
    @Test func aBatchIsWrittenOnce() throws {
        let sandbox = try Sandbox()
        let written = Written()
        let vault = try vault(sandbox, written)
        let before = try vault.status().fileSize
        written.ranges.withLock { $0 = [] }
        let count = 24_000
        #expect(try vault.importItems(Self.items(count)).added == count)
        let ranges = written.ranges.withLock { $0 }
        let bytes = ranges.reduce(0) { $0 + $1.count }
        let size = try vault.status().fileSize
        #expect(size - before > 8 << 20)
        // Each byte is written once, plus the room ahead of the log, into which the index goes.
        #expect(bytes < (size - before) * 3 / 2, "\(bytes) bytes for \(size - before)")
        #expect(written.allocations.withLock { $0 } > 0)
        #expect(try vault.verify().isClean)
        let storage = vault.storage(service: Self.service)
        for number in [0, 1, 9_999, count - 1] {
            #expect(try storage.retrieve(for: TokenKey("key \(number)")) == "fake \(number)")
        }
        vault.close()
        let again = try sandbox.opened()
        #expect(try again.verify().isClean)
        #expect(try again.storage(service: Self.service).retrieve(for: "key 777") == "fake 777")
    }

    /// One that comes upon nothing, upon what was stored and deleted since the index, and upon a new index.
    @Test(.tags(.endurance), .from(.all)) func largeBatchesFollowEachOther() throws {
        let sandbox = try Sandbox()
        let vault = try vault(sandbox)
        let storage = vault.storage(service: Self.service)
        let count = 24_000
        let already = try #require(try vault.status().items)
        #expect(try vault.importItems(Self.items(count)).added == count)
        try storage.store(token: "fake other", for: "key 5")
        #expect(try storage.delete(for: "key 6"))
        var report = try vault.importItems(Self.items(count), onConflict: .replace)
        #expect(report.added == 1 && report.replaced == 1 && report.unchanged == count - 2)
        let longer = (0..<count).map { number in
            TokenItem(metadata: Self.item(number).metadata, secret: Secret(utf8: "fake longer \(number)"))
        }
        report = try vault.importItems(longer, onConflict: .replace)
        #expect(report.replaced == count)
        report = try vault.importItems((count..<2 * count).map(Self.item))
        #expect(report.added == count)
        for reader in [vault, try sandbox.opened()] {
            let storage = reader.storage(service: Self.service)
            #expect(try storage.retrieve(for: "key 5") == "fake longer 5")
            #expect(try storage.retrieve(for: "key 23999") == "fake longer 23999")
            #expect(try storage.retrieve(for: "key 47999") == "fake 47999")
            #expect(try reader.status().items == already + 2 * count)
            #expect(try reader.verify().isClean)
        }
        // A deletion has to erase every value that the item ever had.
        #expect(try storage.delete(for: "key 5"))
        #expect(try vault.status().items == already + 2 * count - 1)
        #expect(try vault.verify().isClean)
    }

    /// What another machine has allocated it may have promised only: its room is zeros that it has taken.
    @Test func anotherMachinesPromiseIsNoRoom() throws {
        let sandbox = try Sandbox()
        let written = Written()
        let vault = try vault(sandbox, written, isRemote: true)
        #expect(try vault.importItems(Self.items(24_000)).added == 24_000)
        #expect(written.allocations.withLock { $0 } == 0)
        #expect(try vault.verify().isClean)
    }

    /// Wherever the two are: next to each other, or in parts that several threads look at.
    @Test(arguments: [[0, 1], [0, 1_999], [999, 1_000], [1_500, 1_501], [3, 1_777]])
    func aKeyThatOccursTwiceIsRefused(_ places: [Int]) throws {
        let sandbox = try Sandbox()
        let vault = try vault(sandbox)
        let before = try sandbox.bytes()
        var items = Self.items(2_000)
        items[places[1]] = items[places[0]]
        let error = try #require(throws: TokenStorageError.self) { try vault.importItems(items) }
        #expect(error.code == .invalidArgument)
        #expect(try sandbox.bytes() == before)
        #expect(try vault.importItems(Self.items(2_000)).added == 2_000)
    }

    @Test func roomIsReadAsZeros() throws {
        let sandbox = try Sandbox()
        // If the file system can allocate room, nothing is written for it.
        let probe = try Child(
            "/usr/bin/fallocate", ["-l", "100000", sandbox.path.appending("probe").string],
            output: sandbox.path.appending("said")
        ).wait()
        let room = try PosixDirectory(sandbox.path).open("empty", .create)
        try room.allocate(0..<100_000)
        #expect(probe != 0 || room.data(from: 0) == nil)
        let file = try PosixDirectory(sandbox.path).open("room", .create)
        try file.write([1, 2, 3], at: 0)
        try file.allocate(3..<3)
        #expect(try file.attributes().size == 3)
        try file.allocate(3..<300_000)
        #expect(try file.attributes().size == 300_000)
        #expect(try file.read(300_001, at: 0) == [1, 2, 3] + [UInt8](repeating: 0, count: 299_997))
        try file.writeZeros(1..<2_200_000)
        #expect(try file.read(2_200_001, at: 0) == [1] + [UInt8](repeating: 0, count: 2_199_999))
    }
}

/// Where the files of a directory were written to.
private final class Written: Sendable {
    let ranges = Mutex<[Range<Int>]>([])
    /// How often room was taken without writing it.
    let allocations = Mutex(0)
}

private final class WatchedDirectory: ForwardingDirectory {
    let base: any DiskDirectory
    let isRemote: Bool
    private let written: Written

    init(_ base: any DiskDirectory, _ written: Written, isRemote: Bool) {
        self.base = base
        self.isRemote = isRemote
        self.written = written
    }

    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        WatchedFile(try base.open(name, access), written)
    }
}

private final class WatchedFile: ForwardingFile {
    let base: any DiskFile
    private let written: Written

    init(_ base: any DiskFile, _ written: Written) {
        self.base = base
        self.written = written
    }

    func write(_ bytes: [UInt8], at offset: Int) throws(SystemFailure) {
        written.ranges.withLock { $0.append(offset..<offset + bytes.count) }
        try base.write(bytes, at: offset)
    }

    func allocate(_ range: Range<Int>) throws(SystemFailure) {
        written.allocations.withLock { $0 += 1 }
        try base.allocate(range)
    }
}
