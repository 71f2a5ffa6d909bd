internal import Glibc
public import Testing

/// How much of the tests a run covers. The environment variable `TOKENVAULT_TESTS` gives its name.
public enum TestLane: String, CaseIterable, Sendable {
    /// What needs neither a keyring, the agent nor `vaultctl`: a bare `swift test`.
    case fast
    /// With the real keyring, the agent and `vaultctl`: `make test`.
    case usual
    /// What `make test` leaves out, and the fast tests once more with every state of a disk: the second half of `make test-all`.
    case remaining
    /// Everything in one run.
    case all

    /// The lane of this run: ``fast`` where the variable is absent.
    public static let current: TestLane = {
        guard let name = getenv("TOKENVAULT_TESTS").map({ String(cString: $0) }) else { return .fast }
        guard let lane = TestLane(rawValue: name) else {
            preconditionFailure("TOKENVAULT_TESTS is \(name), which is none of \(allCases.map(\.rawValue))")
        }
        return lane
    }()

    /// Whether this run has the tests of the lane.
    public var isCovered: Bool {
        switch Self.current {
        case .fast: self == .fast
        case .usual: self == .fast || self == .usual
        case .remaining: self != .usual
        case .all: true
        }
    }
}

extension Tag {
    /// Explores states that a crash leaves on a disk, or kills a program.
    @Tag public static var crash: Self
    /// Needs a real keyring, on a private D-Bus.
    @Tag public static var desktop: Self
    /// Takes many seconds, or more: many processes, steps or states.
    @Tag public static var endurance: Self
    /// Runs `vaultctl` or the agent.
    @Tag public static var programs: Self
    /// Signs in at a real OAuth server.
    @Tag public static var provider: Self
}

extension Trait where Self == ConditionTrait {
    /// Skips the test in runs that do not cover `lane`.
    public static func from(_ lane: TestLane) -> Self {
        .enabled(if: lane.isCovered, "TOKENVAULT_TESTS=\(lane.rawValue) runs it")
    }
}
