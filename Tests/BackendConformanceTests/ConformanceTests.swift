import Testing
import TokenVault
import TokenVaultTesting

@Suite struct ConformanceTests {
    @Test(arguments: backends, TokenStorageConformance.checks)
    func keepsTheContract(_ backend: Backend, _ check: ConformanceCheck) async throws {
        let subject = try await backend.make()
        if check.applies(to: subject) { try await check.run(on: subject) }
    }

    @Test func memoryIsHeldAgainstEveryCheck() {
        let skipped = TokenStorageConformance.checks.filter { !$0.applies(to: MemorySubject()) }
        #expect(skipped.isEmpty)
    }

    @Test func everyCheckHasANameOfItsOwn() {
        let names = TokenStorageConformance.checks.map(\.name)
        #expect(Set(names).count == names.count)
        #expect(names.count >= 50)
        #expect(names.allSatisfy { TokenStorageConformance.check(named: $0) != nil })
    }
}
