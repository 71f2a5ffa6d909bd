internal import Glibc
public import Testing

/// How much of the tests a run covers. The environment variable `TOKENVAULT_TESTS` says it by name.
public enum TestLane: String, CaseIterable, Sendable {
    /// What needs neither a keyring, the agent nor `vaultctl`, and takes a few seconds: a bare `swift test`.
    case fast
    /// With the real keyring, the agent and `vaultctl`.
    case usual
    /// Everything.
    case all

    /// The lane of this run: ``fast`` where the variable is absent.
    public static let current: TestLane = {
        guard let name = getenv("TOKENVAULT_TESTS").map({ String(cString: $0) }) else { return .fast }
        guard let lane = TestLane(rawValue: name) else {
            preconditionFailure("TOKENVAULT_TESTS is \(name), and not fast, usual or all")
        }
        return lane
    }()

    /// Whether this run covers the lane.
    public var isCovered: Bool { rank <= Self.current.rank }

    private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
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
