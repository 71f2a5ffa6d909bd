import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform

/// Crashes of exporting and importing. An export is there whole or not at all. A second import makes up for
/// one that a crash cut short.
@Suite(.tags(.crash)) struct ExportCrashTests {
    private static let out = "tokens.export"
    private static let words = Secret(utf8: "fake export words")

    /// What is on a disk with a vault of some portable items, and these.
    private static func start() throws -> (contents: DiskContents, facts: Facts) {
        let disk = SimulatedDisk(try SimulatedVault.fresh())
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        for index in 0..<9 {
            try vault.storage(service: SimulatedVault.service).store(
                token: VaultWorkload.text("value \(index)", 100 + 700 * index),
                for: TokenKey("key \(index)"), policy: .whenUnlocked)
        }
        let facts = try SimulatedVault.facts(of: vault)
        vault.close()
        return (disk.contents, facts)
    }

    /// The vault is as it was, and the export is not there or the one that was made.
    private struct ExportSubject: CrashSubject {
        var vault: [UInt8]
        var export: [UInt8]

        func inspect(_ disk: SimulatedDisk, expecting expectations: [Expectation]) -> [String] {
            let contents = disk.contents.directories[0]
            var complaints: [String] = []
            if contents[SimulatedVault.name] != vault { complaints.append("the vault was changed") }
            switch contents[ExportCrashTests.out] {
            case nil:
                if expectations.allSatisfy({ $0.highest > 0 }) { complaints.append("the export is gone") }
            case export: break
            case let other?: complaints.append("a part of an export, \(other.count) bytes")
            }
            return complaints
        }
    }

    @Test(arguments: [false, true]) func anExportIsWholeOrNotThere(hasNamelessFiles: Bool) async throws {
        let (start, facts) = try Self.start()
        let disk = SimulatedDisk(start, hasNamelessFiles: hasNamelessFiles)
        let history = History(disk: disk)
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        history.perform("export", [:]) {
            let report = try vault.export(to: Self.out, in: disk.directory(0), passphrase: Self.words)
            guard report.items == facts.count else { throw SimulatedVault.Complaint("\(report)") }
            return 1
        }
        let end = disk.contents.directories[0]
        let report = await CrashRig(samples: 60, limit: 1_500).explore(
            history, from: start,
            subject: ExportSubject(
                vault: end[SimulatedVault.name] ?? [], export: try #require(end[Self.out])))
        print("crash states of exporting: \(report.states) of \(report.crashPoints) crash points")
        #expect(report.violations == [])
        // A nameless file shows on the disk only when it is whole. The other states differ in the anchor.
        #expect(hasNamelessFiles ? report.states < 20 : report.states >= CrashRig.least(100))
        // The written export can be imported.
        let other = SimulatedDisk(try SimulatedVault.fresh())
        let to = try SimulatedVault.open(at: SimulatedVault.location(on: other))
        let imported = try to.importItems(try disk.directory(0).open(Self.out, .read), Self.words, .fail)
        #expect(imported.added == facts.count)
        #expect(try SimulatedVault.facts(of: to).mapValues(\.value) == facts.mapValues(\.value))
    }

    /// What a failing disk leaves of an export is nothing.
    @Test(arguments: [
        (DiskFault.Kind.create, false), (.write, false), (.synchronize, false), (.rename, false),
        (.synchronizeDirectory, false), (.create, true), (.write, true), (.synchronize, true), (.link, true),
        (.synchronizeDirectory, true),
    ])
    func anExportThatFailsLeavesNothingUnfinished(kind: DiskFault.Kind, hasNamelessFiles: Bool) throws {
        let disk = SimulatedDisk(try Self.start().contents, hasNamelessFiles: hasNamelessFiles)
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        disk.inject(DiskFault(kind: kind, directory: 0, errno: .ioError))
        let error = #expect(throws: TokenStorageError.self) {
            try vault.export(to: Self.out, in: disk.directory(0), passphrase: Self.words)
        }
        #expect(error?.code == .ioFailure)
        #expect(try disk.directory(0).names() == [SimulatedVault.name])
    }

    /// The vault holds what it is to hold, and another import brings what is missing.
    private struct ImportSubject: CrashSubject {
        var base: VaultSubject
        var items: [TokenItem]

        func inspect(_ disk: SimulatedDisk, expecting expectations: [Expectation]) -> [String] {
            var complaints = base.inspect(disk, expecting: expectations)
            do {
                let vault = try SimulatedVault.open(
                    at: SimulatedVault.location(on: disk), tailBound: base.tailBound)
                let report = try vault.importItems(items, onConflict: .skip)
                if report.skipped > 0 { complaints.append("another value: \(report)") }
                let found = try SimulatedVault.facts(of: vault)
                for item in items
                where found[item.metadata.key.name]?.value != item.secret.unprotectedText() {
                    complaints.append("\(item.metadata.key) was not imported")
                }
                if try !vault.verify().isClean { complaints.append("verify: not clean") }
            } catch {
                complaints.append("\(error)")
            }
            return complaints
        }
    }

    /// Lines and exports are stored alike, a commit at a time; two of them here, with an index between.
    @Test(.tags(.endurance), .from(.all), arguments: [nil, 4] as [Int?]) func anImportIsGoneOnWith(
        tailBound: Int?
    ) async throws {
        let (source, facts) = try Self.start()
        let from = try SimulatedVault.open(at: SimulatedVault.location(on: SimulatedDisk(source)))
        let storage = from.storage(service: SimulatedVault.service)
        let items = try facts.keys.sorted().map { try #require(try storage.item(for: TokenKey($0))) }
        let start = try SimulatedVault.fresh()
        let disk = SimulatedDisk(start)
        let history = History(disk: disk)
        let script = Script(disk: disk, history: history, tailBound: tailBound)
        let writer = try script.open()
        writer.store("before", VaultWorkload.text("before", 300))
        for half in [items.prefix(5), items.suffix(4)] {
            let values = half.map { ($0.metadata.key.name, facts[$0.metadata.key.name]?.value) }
            history.perform("import", Dictionary(uniqueKeysWithValues: values)) {
                let report = try writer.vault.importItems(Array(half))
                guard report.added == half.count, let last = half.last else {
                    throw SimulatedVault.Complaint("\(report)")
                }
                return try writer.storage.metadata(for: last.metadata.key)?.generation.rawValue
            }
        }
        writer.store("after", "at last")
        let report = await CrashRig(samples: 30, limit: 1_200).explore(
            history, from: start,
            subject: ImportSubject(base: VaultSubject(tailBound: tailBound), items: items))
        print("crash states of importing: \(report.states) of \(report.crashPoints) crash points")
        #expect(report.violations == [])
        #expect(report.states > 100)
    }
}
