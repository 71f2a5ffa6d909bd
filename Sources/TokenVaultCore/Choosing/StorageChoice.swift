/// The choice of a ``StorageChooser``, with its reasons.
public struct StorageChoice: Sendable {
    /// The result of examining a candidate.
    public enum Finding: Equatable, Sendable {
        /// The candidate has items of the service, or items that cannot be shown.
        case holdsItems
        /// The candidate can be used and has no item of the service.
        case isEmpty
        /// The candidate is missing.
        case isUnavailable(TokenStorageError)
        /// The candidate is there and cannot be used: `locked`, `wrongPassphrase`, `corrupt`, `timedOut` …
        case isUnusable(TokenStorageError)
        /// The candidate was not examined: an earlier one was picked, or another one is remembered.
        case notProbed
    }

    /// The storage of the service.
    public let storage: any TokenStorage
    /// The name of the picked candidate.
    public let name: String
    /// The finding for each candidate, in their order.
    public let findings: [(name: String, finding: Finding)]
    /// Whether the choice is remembered, so that later choices are the same. False without a directory to
    /// remember in, and when that directory cannot be written.
    public let isRemembered: Bool
}

extension StorageChoice: CustomStringConvertible {
    /// The choice and the findings, in one line.
    public var description: String {
        "\(name) (" + findings.map { "\($0.name): \($0.finding)" }.joined(separator: "; ") + ")"
    }
}

extension StorageChoice.Finding {
    /// The reason that the candidate `name` cannot be picked; `nil` where it can.
    func rejection(of name: String) -> TokenStorageError.Reason.RejectedCandidate? {
        switch self {
        case .isUnavailable(let error), .isUnusable(let error):
            .init(name: name, code: error.code, reason: error.reason)
        case .holdsItems, .isEmpty, .notProbed: nil
        }
    }
}

extension StorageChoice.Finding: CustomStringConvertible {
    /// The finding in a few words.
    public var description: String {
        switch self {
        case .holdsItems: "has items"
        case .isEmpty: "empty"
        case .isUnavailable(let error): error.code.summary + (error.underlying.map { " (\($0))" } ?? "")
        case .isUnusable(let error): error.code.summary + (error.underlying.map { " (\($0))" } ?? "")
        case .notProbed: "not checked"
        }
    }
}
