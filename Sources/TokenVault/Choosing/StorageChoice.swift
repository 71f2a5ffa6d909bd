/// What a ``StorageChooser`` picked, and why.
public struct StorageChoice: Sendable {
    /// What was found of a candidate.
    public enum Finding: Equatable, Sendable {
        /// It has items of the service, or items that cannot be shown.
        case holdsItems
        /// It can be used and has no item of the service.
        case isEmpty
        /// It is not there.
        case isUnavailable(TokenStorageError)
        /// It is there and cannot be used: `locked`, `wrongPassphrase`, `corrupt`, `timedOut` …
        case isUnusable(TokenStorageError)
        /// It was not looked at: an earlier one was picked, or another one is remembered.
        case notProbed
    }

    /// The storage of the service.
    public let storage: any TokenStorage
    /// The name of the candidate it comes from.
    public let name: String
    /// What was found of each candidate, in their order.
    public let findings: [(name: String, finding: Finding)]
    /// Whether it is remembered, so that a later choice is the same one. False without a directory to
    /// remember in, and when that cannot be written.
    public let isRemembered: Bool
}

extension StorageChoice: CustomStringConvertible {
    /// What was picked and what was found, in one line.
    public var description: String {
        "\(name) (" + findings.map { "\($0.name): \($0.finding)" }.joined(separator: "; ") + ")"
    }
}

extension StorageChoice.Finding: CustomStringConvertible {
    /// In a few words.
    public var description: String {
        switch self {
        case .holdsItems: "has items"
        case .isEmpty: "empty"
        case .isUnavailable(let error): error.code.summary + (error.underlying.map { " (\($0))" } ?? "")
        case .isUnusable(let error): error.code.summary + (error.underlying.map { " (\($0))" } ?? "")
        case .notProbed: "not looked at"
        }
    }
}
