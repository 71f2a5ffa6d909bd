import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// Crashes of making a vault and of forgetting a missing one. Afterwards a new vault can be made at its path,
/// or is refused with a way out. No key is left that the state directory does not account for.
@Suite(.tags(.crash)) struct ForgetCrashTests {
    private static let place: FilePath = "/simulated/test.vault"

    private static func location(on disk: SimulatedDisk) -> VaultLocation {
        VaultLocation(
            directory: disk.directory(0), name: "test.vault", state: disk.directory(1), path: place,
            absolutePath: place)
    }

    private static func make(on disk: SimulatedDisk) throws -> BlockingFileVault {
        try BlockingFileVault.create(
            at: location(on: disk), unlockMethod: SimulatedVault.key("first"),
            configuration: SimulatedVault.configuration())
    }

    private static func lost(on disk: SimulatedDisk) -> MissingVaults {
        MissingVaults(state: disk.directory(1), place: place)
    }

    /// What is kept of a vault that was forgotten, or is known and can be forgotten.
    private struct ForgottenSubject: CrashSubject {
        func inspect(_ disk: SimulatedDisk, expecting expectations: [Expectation]) -> [String] {
            let names = disk.contents.directories[1].keys
            var complaints: [String] = []
            let isKnown = !lost(on: disk).identifiers.isEmpty
            if isKnown, expectations.allSatisfy({ $0.highest > 0 }) { complaints.append("it is known again") }
            if !isKnown, names.contains(where: { $0.hasSuffix(".device") || $0.hasSuffix(".pepper") }) {
                complaints.append("a key is left: \(names.sorted())")
            }
            do {
                if isKnown {
                    if failure({ _ = try make(on: disk) })?.underlying?.hasPrefix("the vault file is gone: ")
                        != true
                    {
                        complaints.append("another is made, and it is known")
                    }
                    _ = try lost(on: disk).forget(among: nil)
                }
                try make(on: disk).close()
            } catch {
                complaints.append("\(error)")
            }
            return complaints
        }
    }

    @Test func aVaultIsForgottenOrKnown() async throws {
        let disk = SimulatedDisk()
        try Self.make(on: disk).close()
        var start = disk.contents
        start.directories[0] = [:]
        start.directories[1]["\(String(repeating: "0", count: 32)).path"] = Array("/elsewhere".utf8)
        let used = SimulatedDisk(start)
        let history = History(disk: used)
        history.perform("forget", [:]) {
            guard try Self.lost(on: used).forget(among: nil).count == 1 else {
                throw SimulatedVault.Complaint("none was known")
            }
            return 1
        }
        #expect(used.contents.directories[1].count == 1)
        let report = await CrashRig(samples: 200, limit: 1_000).explore(
            history, from: start, subject: ForgottenSubject())
        print("crash states of forgetting: \(report.states) of \(report.crashPoints) crash points")
        #expect(report.violations == [])
        #expect(report.states >= 4)
    }

    /// The vault is there and opens, or another can be made there: one that never was is not missed.
    private struct MadeSubject: CrashSubject {
        func inspect(_ disk: SimulatedDisk, expecting expectations: [Expectation]) -> [String] {
            do {
                if disk.contents.directories[0]["test.vault"] == nil {
                    if expectations.allSatisfy({ $0.highest > 0 }) { return ["the vault is gone"] }
                    try make(on: disk).close()
                }
                let vault = try SimulatedVault.open(at: location(on: disk))
                try vault.storage(service: "s").store(token: "fake", for: "k")
                return try vault.verify().isClean ? [] : ["not clean"]
            } catch {
                return ["\(error)"]
            }
        }
    }

    @Test(arguments: [false, true])
    func aVaultThatWasNotMadeToItsEndIsNotMissed(hasNamelessFiles: Bool) async throws {
        let disk = SimulatedDisk(hasNamelessFiles: hasNamelessFiles)
        let history = History(disk: disk)
        history.perform("create", [:]) {
            try Self.make(on: disk).close()
            return 1
        }
        let report = await CrashRig(samples: 60, limit: 1_000).explore(
            history, from: DiskContents(directories: [[:], [:]]), subject: MadeSubject())
        print("crash states of creating: \(report.states) of \(report.crashPoints) crash points")
        #expect(report.violations == [])
        #expect(report.states >= CrashRig.least(11))
    }
}
