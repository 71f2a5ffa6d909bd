import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform

/// What a crash leaves is no damage: salvaging it saves what opening it shows, and says that nothing is lost.
@Suite(.tags(.crash)) struct SalvageCrashTests {
    @Test(
        arguments: [
            VaultWorkload.stores, .batches, .deletions, .compactions, .indexed, .slots,
        ].map(\.name))
    func aCrashIsNoLoss(of name: String) throws {
        let workload = try #require(VaultWorkload.all.first { $0.name == name })
        let start = try workload.start()
        let history = try workload.history(from: start)
        let states = CrashStates(of: history, from: start, samples: 12, limit: 70, seed: 5)
        for state in 0..<states.count {
            let crashed = states.contents(of: state)
            let saved = try salvaged(crashed, tailBound: workload.tailBound)
            let vault = try SimulatedVault.open(
                at: SimulatedVault.location(on: SimulatedDisk(crashed)), tailBound: workload.tailBound)
            let found = try SimulatedVault.facts(of: vault)
            let difference = Expectation(allowed: [found]).complaint(about: saved.facts)
            #expect(difference == nil, "\(states.description(of: state))")
            #expect(saved.report.isComplete, "\(states.description(of: state)): \(saved.report)")
            #expect(saved.report.mayBeOlder == 0)
        }
        #expect(states.count > 20)
    }

    private func salvaged(
        _ contents: DiskContents, tailBound: Int?
    ) throws -> (report: SalvageReport, facts: Facts) {
        let disk = SimulatedDisk(contents)
        let copy = try RestoreCrashTests.opened(
            SimulatedVault.name, at: SimulatedVault.location(on: disk), tailBound: tailBound)
        let out = "out.vault"
        let report = try copy.salvage(
            to: VaultLocation(directory: disk.directory(0), name: out, state: nil, path: "/simulated/out"))
        let vault = try SimulatedVault.open(
            at: VaultLocation(
                directory: disk.directory(0), name: out, state: disk.directory(1), path: "/simulated/out"))
        return (report, try SimulatedVault.facts(of: vault))
    }
}
