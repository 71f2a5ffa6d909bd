import Testing
import TokenVault
import TokenVaultTesting

@Suite struct ConformanceTests {
    @Test(arguments: backends, TokenStorageConformance.checks)
    func keepsTheContract(_ backend: Backend, _ check: ConformanceCheck) async throws {
        guard backend.isHeldAgainst(check) else { return }
        let subject = try await backend.make()
        if check.applies(to: subject) { try await check.run(on: subject) }
    }

    @Test func memoryAndFileAreHeldAgainstEveryCheck() throws {
        for subject in [MemorySubject(), try FileSubject(passphrase: true)] as [any ConformanceSubject] {
            #expect(TokenStorageConformance.checks.filter { !$0.applies(to: subject) }.isEmpty)
        }
        let keyFile = try FileSubject(passphrase: false)
        let unmet = TokenStorageConformance.checks.filter { !$0.applies(to: keyFile) }
        #expect(unmet.allSatisfy { $0.requirements.contains(.passcode) })
    }

    @Test func everyCheckHasANameOfItsOwn() {
        let names = TokenStorageConformance.checks.map(\.name)
        #expect(Set(names).count == names.count)
        #expect(names.count >= 50)
        #expect(names.allSatisfy { TokenStorageConformance.check(named: $0) != nil })
    }
}
