/// A backend broke the contract: which check says so, what was expected and what was found.
public struct ConformanceFailure: Error, Sendable, CustomStringConvertible {
    /// The name of the check.
    public internal(set) var check: String
    /// What the contract asks for.
    public let expected: String
    /// What the backend did.
    public let found: String
    /// The line of the kit that noticed, as `file:line`.
    public let location: String

    init(expected: String, found: String, file: String = #fileID, line: Int = #line) {
        check = ""
        self.expected = expected
        self.found = found
        location = "\(file):\(line)"
    }

    /// One line with all of it.
    public var description: String {
        "\(check): expected \(expected), found \(found) (\(location))"
    }

    static func missing(_ capability: ConformanceCapability) -> ConformanceFailure {
        ConformanceFailure(
            expected: "a subject with the capability \(capability.rawValue)", found: "one without")
    }
}
