import Testing
import TokenVault
import TokenVaultTesting

/// The kit itself can fail: each broken backend is found by the check that is about it.
@Suite struct KitCatchesFaultsTests {
    @Test(arguments: mutants)
    func aFaultIsCaughtByItsCheck(_ mutant: Mutant) async throws {
        let check = try #require(TokenStorageConformance.check(named: mutant.check))
        let failure = await #expect(throws: ConformanceFailure.self) {
            try await check.run(on: mutant.make())
        }
        #expect(failure?.check == mutant.check)
    }

    @Test func aSubjectWithoutFaultPassesEveryCheck() async throws {
        for check in TokenStorageConformance.checks {
            var subject = FaultySubject()
            subject.eventTimeout = .seconds(60)
            try await check.run(on: subject)
        }
    }

    @Test func aCheckThatDoesNotApplyIsNoPass() async throws {
        struct Plain: ConformanceSubject {
            func storage(service: String) -> any TokenStorage { InMemoryTokenStorage(service: service) }
        }
        let check = try #require(TokenStorageConformance.checks.first { !$0.requirements.isEmpty })
        #expect(!check.applies(to: Plain()))
        await #expect(throws: ConformanceFailure.self) { try await check.run(on: Plain()) }
    }
}
