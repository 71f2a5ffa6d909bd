/// The contract of `TokenStorage` as checks for any backend.
///
/// With Swift Testing:
/// ```swift
/// @Test(arguments: TokenStorageConformance.checks)
/// func conforms(_ check: ConformanceCheck) async throws {
///     let subject = MySubject()
///     if check.applies(to: subject) { try await check.run(on: subject) }
/// }
/// ```
/// With XCTest, loop over the checks. The kit does not depend on either.
public enum TokenStorageConformance {
    /// Every check, in the order of the contract.
    public static let checks: [ConformanceCheck] =
        valueChecks + keyChecks + serviceChecks + detailChecks + policyChecks + generationChecks
        + compareChecks + commitChecks + renameChecks + listChecks + deleteChecks + changeChecks
        + concurrencyChecks + lockChecks + deviceChecks + handleChecks + errorChecks

    /// Returns the check of that name.
    public static func check(named name: String) -> ConformanceCheck? {
        checks.first { $0.name == name }
    }
}
