/// A breach of the contract by a backend: the check, the expected result and the actual one.
public struct ConformanceFailure: Error, Sendable, CustomStringConvertible {
    /// The name of the check.
    public internal(set) var check: String
    /// The result that the contract requires.
    public let expected: String
    /// The actual result.
    public let found: String
    /// The line of the test kit that found the breach, as `file:line`.
    public let location: String

    init(expected: String, found: String, file: String = #fileID, line: Int = #line) {
        check = ""
        self.expected = expected
        self.found = found
        location = "\(file):\(line)"
    }

    /// Check, results and location in one line.
    public var description: String {
        "\(check): expected \(expected), found \(found) (\(location))"
    }

    static func missing(_ capability: ConformanceCapability) -> ConformanceFailure {
        ConformanceFailure(
            expected: "a subject with the capability \(capability.rawValue)", found: "one without")
    }
}
