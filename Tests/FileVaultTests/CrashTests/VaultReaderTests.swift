import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform

/// A reader that looks after every single operation of the writers. It sees what was acknowledged, alone or
/// with the call that is under way, and never a half.
@Suite(.tags(.crash)) struct VaultReaderTests {
    /// Workloads whose readers need no key derivation.
    static let workloads = [
        VaultWorkload.stores, .replacements, .deletions, .batches, .growth, .compactions, .twoWriters,
        .failedWrites,
    ]

    @Test(arguments: workloads.map(\.name))
    func readersBetweenAllOperationsSeeNoHalf(_ name: String) throws {
        let workload = try #require(Self.workloads.first { $0.name == name })
        let start = try workload.start()
        let history = try workload.history(from: start)
        #expect(history.complaints == [])

        let disk = SimulatedDisk(start)
        // The writer holds the lock while the reader reads, so the reader may give up a wait.
        let reader = try SimulatedVault.open(
            at: SimulatedVault.location(on: disk), lockTimeout: .milliseconds(1))
        var looks = 0
        var waits = 0
        for (position, operation) in history.disk.trace.enumerated() {
            disk.replay(operation)
            let expectation = history.expectation(at: position + 1)
            do {
                let complaint = expectation.complaint(about: try SimulatedVault.facts(of: reader))
                #expect(complaint == nil, "after \(position), \(operation)")
                looks += 1
            } catch let error as TokenStorageError where error.code == .timedOut {
                waits += 1
            } catch {
                Issue.record("after \(position), \(operation): \(error)")
            }
        }
        // A reader that mostly waits would prove nothing, and would not be usable.
        #expect(looks > 9 * waits, "\(looks) looks, \(waits) waits")
        let last = history.expectation(at: history.disk.position)
        #expect(last.complaint(about: try SimulatedVault.facts(of: reader)) == nil)
    }
}
