import Testing
import TokenVault
import TokenVaultPlatform

/// A device that only reads remembers what it has read.
@Suite struct ReadingTests {
    private let writer = TestDevice()
    private let reader = TestDevice()
    private let old: [UInt8]

    init() throws {
        try writer.create()
        try writer.use { try $0.store("old", for: "token") }
        old = writer.file
        try writer.use { try $0.store("new", for: "token") }
    }

    @Test func anOlderFileIsRefusedWhereNothingWasWritten() throws {
        try reader.receive(old)
        #expect(try reader.use { try $0.value(of: "token") } == "old")
        try reader.receive(writer.file)
        #expect(try reader.use { try $0.value(of: "token") } == "new")
        try reader.receive(old)
        #expect(failure { try reader.use { _ in } }?.code == .rolledBack)
    }

    /// A merge that finds nothing to take has read the vault's file too.
    @Test func aMergeThatFindsNothingCounts() throws {
        try reader.receive(old)
        try reader.use { _ = try $0.value(of: "token") }
        try reader.receive(writer.file)
        #expect(try reader.merge(old).isUpToDate)
        try reader.receive(old)
        #expect(failure { try reader.use { _ in } }?.code == .rolledBack)
        try reader.receive(writer.file)
        #expect(try reader.use { try $0.value(of: "token") } == "new")
    }

    /// Also of what came while a program had the vault open, and no other program has opened it since.
    @Test func whatCameWhileItWasOpenCounts() throws {
        try reader.receive(old)
        let open = try reader.opened()
        defer { open.close() }
        let newer = writer.file
        reader.disk.tamper(0, SimulatedVault.name) { $0 = newer }
        #expect(try open.value(of: "token") == "new")
        reader.disk.tamper(0, SimulatedVault.name) { $0 = old }
        #expect(failure { try reader.use { _ in } }?.code == .rolledBack)
    }

    /// A state directory that cannot be written: the vault works, and says that old copies are not noticed.
    @Test func anAnchorThatCannotMoveIsReported() throws {
        try reader.receive(old)
        try reader.use { vault in
            let status = try vault.status()
            #expect(status.rollbackProtection == .anchored && vault.unlockWarnings.isEmpty)
        }
        let location = SimulatedVault.location(
            reader.disk.directory(0), ReadOnlyDirectory(reader.disk.directory(1)))
        let vault = try BlockingFileVault.open(
            at: location, configuration: SimulatedVault.configuration(tailBound: 6))
        defer { vault.close() }
        try vault.unlock(with: TestDevice.key)
        try vault.store("newer", for: "token")
        let status = try vault.status()
        #expect(status.rollbackProtection == .none && !status.notes.isEmpty, "\(status.notes)")
        #expect(vault.unlockWarnings.count == 1 && status.notes.contains(vault.unlockWarnings[0]))
    }

    @Test func readingSyncsNothing() throws {
        try reader.receive(old)
        try reader.use { _ in }
        try reader.receive(writer.file)
        let before = reader.disk.position
        try reader.use { _ = try $0.value(of: "token") }
        let done = reader.disk.trace.dropFirst(before)
        let syncs = done.filter {
            switch $0 {
            case .synchronize, .synchronizeDirectory: true
            default: false
            }
        }
        #expect(syncs.isEmpty && !done.isEmpty, "\(done)")
        // Once the anchor is up to date, reading writes nothing.
        let position = reader.disk.position
        try reader.use { _ = try $0.value(of: "token") }
        #expect(reader.disk.position == position)
    }

    /// What a writer is writing may never become durable. The reader anchors it only after the writer has
    /// released the lock.
    @Test func whatIsBeingWrittenIsNotAnchored() throws {
        try reader.receive(writer.file)
        try reader.use { _ in }
        let file = try reader.disk.directory(0).open(SimulatedVault.name, .readWrite)
        let open = try reader.opened()
        defer { open.close() }
        try writer.use { try $0.store("newest", for: "token") }
        let newer = writer.file
        let anchor = reader.disk.contents.directories[1]
        #expect(try file.tryLock(.exclusive))
        try file.write(newer, at: 0)
        #expect(try open.value(of: "token") == "newest")
        #expect(reader.disk.contents.directories[1] == anchor)
        file.unlock()
        #expect(try open.value(of: "token") == "newest")
        #expect(reader.disk.contents.directories[1] != anchor)
    }

    /// Of two programs that read at once, the one that came less far does not take the anchor back.
    @Test func theAnchorDoesNotGoBack() throws {
        try reader.receive(old)
        let behind = try reader.opened()
        defer { behind.close() }
        try reader.receive(writer.file)
        try reader.use { _ in }
        #expect(try behind.value(of: "token") == "old")
        try reader.receive(old)
        #expect(failure { try reader.use { _ in } }?.code == .rolledBack)
    }
}
