import TokenVault

/// One rule of the contract of `TokenStorage`, with a test of whether a backend keeps it.
public struct ConformanceCheck: Sendable, Identifiable, CustomStringConvertible {
    /// The rule, as one sentence. Unique among all checks.
    public let name: String
    /// The capabilities that the check needs in its subject.
    public let requirements: Set<ConformanceCapability>
    private let body: @Sendable (TestFixture) async throws -> Void

    init(
        _ name: String, requires requirements: Set<ConformanceCapability> = [],
        _ body: @escaping @Sendable (TestFixture) async throws -> Void
    ) {
        self.name = name
        self.requirements = requirements
        self.body = body
    }

    /// The name.
    public var id: String { name }
    /// The name.
    public var description: String { name }

    /// Returns whether `subject` has the capabilities that this check needs.
    public func applies(to subject: some ConformanceSubject) -> Bool {
        requirements.isSubset(of: subject.capabilities)
    }

    /// Checks `subject`, which should be fresh. Services have random names, so that a persistent store can be
    /// used too. Throws ``ConformanceFailure`` when the contract is broken or the check does not apply. Also
    /// throws the errors of the subject.
    public func run(on subject: some ConformanceSubject) async throws {
        do {
            for requirement in requirements where !subject.capabilities.contains(requirement) {
                throw ConformanceFailure.missing(requirement)
            }
            try await body(TestFixture(subject))
        } catch var failure as ConformanceFailure {
            failure.check = name
            throw failure
        } catch let error as TokenStorageError {
            var failure = ConformanceFailure(expected: "no error", found: describe(error))
            failure.check = name
            throw failure
        }
    }
}
