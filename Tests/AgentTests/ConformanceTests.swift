import TestLanes
import Testing
import TokenVault
import TokenVaultTesting
import VaultAgent

@Suite(.tags(.programs), .from(.usual)) struct AgentConformanceTests {
    @Test(arguments: TokenStorageConformance.checks)
    func keepsTheContract(_ check: ConformanceCheck) async throws {
        let subject = try AgentSubject(sharedWithFile: false)
        if check.applies(to: subject) { try await check.run(on: subject) }
    }

    @Test(arguments: TokenStorageConformance.checks)
    func theBlockingViewKeepsTheContract(_ check: ConformanceCheck) async throws {
        let subject = ThroughBlockingView(try AgentSubject(sharedWithFile: false))
        if check.applies(to: subject) { try await check.run(on: subject) }
    }

    @Test(arguments: TokenStorageConformance.checks.filter { $0.requirements.contains(.anotherHandle) })
    func keepsTheContractBesideADirectWriter(_ check: ConformanceCheck) async throws {
        try await check.run(on: try AgentSubject(sharedWithFile: true))
    }

    @Test func isHeldAgainstNearlyEveryCheck() throws {
        let subject = try AgentSubject(sharedWithFile: false)
        let unmet = TokenStorageConformance.checks.filter { !$0.applies(to: subject) }
        #expect(unmet.allSatisfy { $0.requirements.contains(.passcode) })
    }
}
